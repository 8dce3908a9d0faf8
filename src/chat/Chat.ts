/** Chat and text completions: a relay over OpenAI-compatible upstreams, admitted and charged by the gate. */
import { Cause, Context, Effect, FiberId, Layer } from "effect"
import type { Either } from "effect"
import { failure, Gate } from "../gate/Gate.ts"
import type { Admission, Measured, Metered } from "../gate/Gate.ts"
import type { InsufficientCredits } from "../gate/Problems.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import type { BodyProblem } from "../http/Incoming.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import * as Reply from "../http/Reply.ts"
import { affordable } from "../idempotency/BeforeBody.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside, IdempotencyProblem } from "../idempotency/Idempotency.ts"
import { toDecimal } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import { failed, messageOf, parse, refused } from "../upstream/Failures.ts"
import type { UpstreamProblem } from "../upstream/Failures.ts"
import { Upstreams } from "../upstream/Upstreams.ts"
import type { Upstream } from "../upstream/Upstreams.ts"
import * as Wire from "../upstream/Wire.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { extrasOf, withExtras } from "./Extras.ts"
import { findModel, Models } from "./Model.ts"
import type { Model, ModelRoute } from "./Model.ts"
import { answerTokensWithin, boundOf, mostOf, promptTokensSeen, readChat, readCompletion } from "./Prompt.ts"
import type { Prompt } from "./Prompt.ts"
import * as Relay from "./Relay.ts"
import { costOf, isBeyond, priceLines, tokensIn, tokensOf } from "./Tokens.ts"
import type { Figures, Tokens } from "./Tokens.ts"

export type ChatProblem = BodyProblem | InsufficientCredits | IdempotencyProblem | UpstreamProblem

export interface Contract {
  /** `POST /v1/chat/completions`. */
  readonly chat: (caller: Caller, inbound: Inbound) => Effect.Effect<Reply.Reply, ChatProblem>
  /** `POST /v1/completions`. */
  readonly completion: (caller: Caller, inbound: Inbound) => Effect.Effect<Reply.Reply, ChatProblem>
}

/** The longest request body: pictures travel in it. */
export const requestBytesMax = 32 * 1024 * 1024
/** The longest whole answer. */
const answerBytesMax = 64 * 1024 * 1024

export class Chat extends Context.Tag("tollgate/chat/Chat")<Chat, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Chat, make))
}

interface Endpoint {
  readonly name: "chat/completions" | "completions"
  readonly read: (bytes: Buffer) => Either.Either<Prompt, InvalidRequest>
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const catalogue = yield* Models
  const upstreams = yield* Upstreams
  const idempotency = yield* Idempotency
  const versions = yield* PriceVersions

  /** A model at the prices of a call, and their version. */
  interface Offer {
    readonly model: Model
    readonly price: string
  }
  const offer = (model: Model): Effect.Effect<Offer> =>
    Effect.map(versions.of(priceLines(model)), (price) => ({ model, price }))
  const plain = new Map(
    yield* Effect.forEach(catalogue.models, (model) =>
      Effect.map(offer(model), (offered) => [model.id, offered] as const)
    )
  )

  // Every answer has a token at least.
  const least = catalogue.models.map(({ completion_price }) => charge([{ units: 1, price: completion_price }]))
  const paid = affordable(gate, idempotency, least)

  const serve = (endpoint: Endpoint) =>
    Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
      const bytes = yield* inbound.read(requestBytesMax)
      const prompt = yield* endpoint.read(bytes)
      const found = findModel(catalogue, prompt.model)
      if (found === undefined) return yield* unknownModel(prompt.model)
      const extras = yield* extrasOf(found, prompt.body)
      const { model, price } = extras.length === 0 ? plain.get(found.id)! : yield* offer(withExtras(found, extras))

      const { enough, least, most } = boundOf(model, prompt)
      const claim = {
        caller,
        usage_type: "inference",
        endpoint: endpoint.name,
        model: model.id,
        provider: model.routes[0]!.upstream,
        price,
        beside,
        least,
        enough,
        most
      } as const
      return yield* gate.meter(claim, (admission) => relay(endpoint, admission, model, prompt, inbound))
    })

  const relay = (
    endpoint: Endpoint,
    admission: Admission,
    model: Model,
    prompt: Prompt,
    inbound: Inbound
  ): Effect.Effect<Metered<Reply.Reply>, UpstreamProblem | BooksUnavailable> => {
    const limit = answerTokensWithin(model, prompt, admission.reserved)
    const answer = prompt.stream ? stream : complete
    return firstOf(model.routes, (route) => {
      const upstream = upstreams.get(route.upstream)!
      const takes = route.limit_field !== "none"
      return answer({
        upstream,
        request: {
          method: "POST",
          path: `/${endpoint.name}`,
          headers: upstream.headers,
          body: JSON.stringify(bodyFor(endpoint, route, prompt, takes ? limit : undefined))
        },
        admission,
        model,
        prompt,
        most: mostOf(model, prompt, takes ? limit : model.output_tokens_max),
        request_id: inbound.request_id
      })
    })
  }

  const once = (endpoint: Endpoint) => {
    const call = serve(endpoint)
    return (caller: Caller, inbound: Inbound) =>
      paid(
        caller,
        inbound,
        idempotency.onceOf(caller, inbound, endpoint.name, requestBytesMax, (inbound, beside) =>
          untilGone(inbound, call(caller, inbound, beside))
        )
      )
  }

  return {
    chat: once({ name: "chat/completions", read: readChat }),
    completion: once({ name: "completions", read: readCompletion })
  } satisfies Contract
})

/** The body as the upstream gets it: its own name of the model, and one limit of the answer, or none where it takes none. */
const bodyFor = (
  endpoint: Endpoint,
  { limit_field, model }: ModelRoute,
  { body, stream }: Prompt,
  limit: number | undefined
): object => {
  const sent: Record<string, unknown> = {
    ...body,
    model,
    max_tokens: undefined,
    max_completion_tokens: undefined
  }
  // Text completions know no other name.
  if (limit !== undefined) sent[endpoint.name === "completions" ? "max_tokens" : limit_field] = limit
  // Always asked for: the charge is by it. The client sees it only if it asked too.
  if (stream) sent.stream_options = { ...(body.stream_options as object | null | undefined), include_usage: true }
  return sent
}

/**
 * Tries the routes in order. Only what the next one might do better goes on to it; nothing does once an answer has begun. A caller
 * that has left is told of no failure: the call ends with the interruption.
 */
const firstOf = <A>(
  routes: Model["routes"],
  attempt: (route: ModelRoute) => Effect.Effect<A, UpstreamProblem | BooksUnavailable>
): Effect.Effect<A, UpstreamProblem | BooksUnavailable> => {
  const [first, ...others] = routes
  return Effect.catchAll(attempt(first!), (problem) => {
    // The upstream did answer; what it cost is on its way into the books.
    if (problem._tag === "BooksUnavailable") return Effect.fail(problem)
    return problem._tag === "UpstreamRejected" || others.length === 0
      ? Effect.interruptible(Effect.fail(problem))
      : firstOf(others, attempt)
  })
}

/**
 * Interrupts the call when its client leaves. Nobody hears the answer then, unless they come again with the same Idempotency-Key.
 */
const untilGone = <E>(inbound: Inbound, call: Effect.Effect<Reply.Reply, E>): Effect.Effect<Reply.Reply, E> =>
  Effect.uninterruptible(
    Effect.withFiberRuntime((fiber) => {
      let over = false
      inbound.onGone(() => {
        if (!over) fiber.unsafeInterruptAsFork(FiberId.none)
      })
      return Effect.matchCauseEffect(call, {
        onSuccess: (reply) => {
          over = true
          return Effect.succeed(reply)
        },
        onFailure: (cause) => {
          over = true
          return Cause.isInterruptedOnly(cause) ? Effect.succeed(clientLeft) : Effect.failCause(cause)
        }
      })
    })
  )

const clientLeft = Reply.json(499, { error: "the client left before there was an answer", code: "client_disconnected" })

/** A call on its way to one upstream. */
interface Attempt {
  readonly upstream: Upstream
  readonly request: Wire.WireRequest
  readonly admission: Admission
  readonly model: Model
  readonly prompt: Prompt
  /** The most tokens that the request, as it is sent, can cause. */
  readonly most: Figures
  readonly request_id: string | undefined
}

type Answer = (attempt: Attempt) => Effect.Effect<Metered<Reply.Reply>, UpstreamProblem | BooksUnavailable>

const complete: Answer = Effect.fnUntraced(function* (attempt) {
  const { admission, request, request_id, upstream } = attempt
  const answer = yield* Effect.catchAll(
    upstream.wire(admission).exchange(request, { limit: answerBytesMax }),
    ({ reason }) => failed(upstream.name, reason, request_id)
  )
  if (answer.status < 200 || answer.status > 299) return yield* refused(upstream.name, answer, request_id)
  const parsed = parse(answer.body.toString("utf8"))
  if (parsed === undefined) return yield* failed(upstream.name, "its answer is not a JSON object", request_id)
  // Some upstreams say 200 where they failed.
  if (Relay.isFailure(parsed) || !Array.isArray(parsed.choices)) {
    const reason = messageOf(parsed) ?? "it does not say why"
    return yield* failed(upstream.name, `its answer has an error, or no choices: ${reason}`, request_id)
  }

  const { choices, usage } = parsed
  if (isBeyond(usage, attempt.most)) yield* beyond(attempt, usage)
  const tokens = tokensOf(usage, seenOf(attempt, tokensIn(latin1(choices))), attempt.most)
  return yield* admission.answer(measured(attempt, tokens), ({ charged }) => ({
    status: 200,
    headers: { "content-type": "application/json", "x-charge-usd": toDecimal(charged) },
    body: answer.body
  }))
})

const stream: Answer = Effect.fnUntraced(function* (attempt) {
  const { admission, prompt, request, request_id, upstream } = attempt
  const unreachable = ({ reason }: Wire.Unreachable) => failed(upstream.name, reason, request_id)
  const answer = yield* Effect.catchAll(upstream.wire(admission).open(request), unreachable)
  if (answer.status < 200 || answer.status > 299) {
    const whole = yield* Effect.catchAll(Wire.collect(answer, refusalBytesMax), unreachable)
    return yield* refused(upstream.name, whole, request_id)
  }
  const type = Wire.header(answer.headers, "content-type") ?? "nothing"
  if (!/^text\/event-stream\b/i.test(type)) {
    answer.abort()
    return yield* failed(upstream.name, `asked for a stream, it answered ${type}`, request_id)
  }
  const relay = Relay.make(answer, prompt)
  const settled = Effect.flatMap(relay.ended, (ending) =>
    Effect.zipRight(
      isBeyond(ending.usage, attempt.most) ? beyond(attempt, ending.usage) : Effect.void,
      Effect.matchCause(admission.settle(measuredOf(ending, attempt)), {
        onFailure: relay.cut,
        onSuccess: () => relay.finish(ending)
      })
    )
  )
  return yield* admission.goOn(
    { status: 200, headers: { "content-type": "text/event-stream", "cache-control": "no-cache" }, body: relay.body },
    settled
  )
})

// ---- what is charged ------------------------------------------------------------------------------------------------------

/** A call that ran to its end. Written out rather than spread, being made for every call. */
const measured = ({ model, upstream }: Attempt, tokens: Tokens, error_type: string | null = null): Measured => ({
  cost: costOf(model, tokens),
  prompt_tokens: tokens.prompt_tokens,
  completion_tokens: tokens.completion_tokens,
  units: tokens.prompt_tokens + tokens.completion_tokens,
  provider: upstream.name,
  success: error_type !== "upstream_error",
  error_type,
  usage_source: tokens.usage_source
})

/** What was seen of a call whose answer came to so many tokens. */
const seenOf = ({ model, prompt }: Attempt, completion_tokens: number): Figures => ({
  prompt_tokens: promptTokensSeen(model, prompt),
  completion_tokens
})

const measuredOf = ({ how, tokens_seen, usage }: Relay.Ending, attempt: Attempt): Measured => {
  if (how === "broken") {
    // What the upstream reported before it broke is charged, and nothing else.
    const told = tokensOf(usage, { prompt_tokens: 0, completion_tokens: 0 }, attempt.most)
    return told.prompt_tokens + told.completion_tokens === 0
      ? { ...failure("upstream_error"), provider: attempt.upstream.name }
      : measured(attempt, told, "upstream_error")
  }
  const tokens = tokensOf(usage, seenOf(attempt, tokens_seen), attempt.most)
  return measured(attempt, tokens, how === "left" ? "client_disconnected" : null)
}

/** As JSON, a character for each byte. */
const latin1 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("latin1")

/** The operator reads that an upstream did more than it was asked, or says so. */
const beyond = ({ model, most, request_id, upstream }: Attempt, usage: unknown): Effect.Effect<void> =>
  Effect.logWarning("an upstream reports more tokens than the request can have caused").pipe(
    Effect.annotateLogs({
      upstream: upstream.name,
      model: model.id,
      reported: JSON.stringify(usage),
      most: JSON.stringify(most),
      hint: "if its answers are longer than the limit that was sent, it may know the limit by the other limit_field",
      ...(request_id !== undefined && { request_id })
    })
  )

// ---- what can go wrong ------------------------------------------------------------------------------------------------------

const refusalBytesMax = 1024 * 1024

const unknownModel = (name: string) =>
  new InvalidRequest({
    message: `model: there is no model ${JSON.stringify(name.slice(0, 100))}; GET /v1/models lists them`,
    field: "model",
    rule: "a model of GET /v1/models"
  })
