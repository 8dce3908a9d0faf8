/** Chat and text completions: a relay over OpenAI-compatible upstreams, admitted and charged by the gate. */
import { Context, Effect, Layer } from "effect"
import type { Either } from "effect"
import { Gate } from "../gate/Gate.ts"
import type { Admission, Measured, Metered } from "../gate/Gate.ts"
import type { InsufficientCredits } from "../gate/Problems.ts"
import type { CallerFacts } from "../http/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import type { BodyProblem } from "../http/Incoming.ts"
import { InvalidRequest } from "../http/Problems.ts"
import type { Reply } from "../http/Reply.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside, IdempotencyProblem } from "../idempotency/Idempotency.ts"
import { toDecimal } from "../kernel/Money.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import { failed, isObject, messageOf, parse, refused } from "../upstream/Failures.ts"
import type { UpstreamProblem } from "../upstream/Failures.ts"
import { Upstreams } from "../upstream/Upstreams.ts"
import type { Upstream } from "../upstream/Upstreams.ts"
import * as Wire from "../upstream/Wire.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { findModel, Models } from "./Model.ts"
import type { Model } from "./Model.ts"
import { answerTokensWithin, boundOf, readChat, readCompletion } from "./Prompt.ts"
import type { Prompt } from "./Prompt.ts"
import * as Relay from "./Relay.ts"
import { bytesAToken, costOf, estimated, ofProvider, priceLines } from "./Tokens.ts"
import type { Tokens } from "./Tokens.ts"

export type ChatProblem = BodyProblem | InsufficientCredits | IdempotencyProblem | UpstreamProblem

export interface Contract {
  /** `POST /v1/chat/completions`. */
  readonly chat: (caller: CallerFacts, inbound: Inbound) => Effect.Effect<Reply, ChatProblem>
  /** `POST /v1/completions`. */
  readonly completion: (caller: CallerFacts, inbound: Inbound) => Effect.Effect<Reply, ChatProblem>
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
  const prices = new Map(
    yield* Effect.forEach(catalogue.models, (model) =>
      Effect.map(versions.of(priceLines(model)), (version) => [model.id, version] as const)
    )
  )

  const serve = (endpoint: Endpoint) =>
    Effect.fnUntraced(function* (caller: CallerFacts, inbound: Inbound, beside: Beside | undefined) {
      const bytes = yield* inbound.read(requestBytesMax)
      const prompt = yield* endpoint.read(bytes)
      const model = findModel(catalogue, prompt.model)
      if (model === undefined) return yield* unknownModel(prompt.model)

      const { enough, least, most } = boundOf(model, prompt)
      const claim = {
        caller,
        usage_type: "inference",
        endpoint: endpoint.name,
        model: model.id,
        provider: model.routes[0]!.upstream,
        price: prices.get(model.id),
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
  ): Effect.Effect<Metered<Reply>, UpstreamProblem | BooksUnavailable> => {
    const added = {
      ...(prompt.answer_tokens_max === undefined && {
        max_tokens: answerTokensWithin(model, prompt, admission.reserved)
      }),
      // Always asked for: the charge is by it. The client sees it only if it asked too.
      ...(prompt.stream && { stream_options: { include_usage: true } })
    }
    const answer = prompt.stream ? stream : complete
    return firstOf(model.routes, (route) => {
      const upstream = upstreams.get(route.upstream)!
      const request = {
        method: "POST",
        path: `/${endpoint.name}`,
        headers: upstream.headers,
        body: JSON.stringify({ ...prompt.body, ...added, model: route.model })
      } as const
      return answer(upstream, request, admission, model, prompt, inbound)
    })
  }

  const once = (endpoint: Endpoint) => {
    const call = serve(endpoint)
    return (caller: CallerFacts, inbound: Inbound) =>
      idempotency.onceOf(caller, inbound, endpoint.name, requestBytesMax, (inbound, beside) =>
        call(caller, inbound, beside)
      )
  }

  return {
    chat: once({ name: "chat/completions", read: readChat }),
    completion: once({ name: "completions", read: readCompletion })
  } satisfies Contract
})

/** Tries the routes in order. Only what the next one might do better goes on to it; nothing does once an answer has begun. */
const firstOf = <A>(
  routes: Model["routes"],
  attempt: (route: Model["routes"][number]) => Effect.Effect<A, UpstreamProblem | BooksUnavailable>
): Effect.Effect<A, UpstreamProblem | BooksUnavailable> => {
  const [first, ...others] = routes
  const tried = attempt(first!)
  return others.length === 0
    ? tried
    : Effect.catchAll(tried, (problem) =>
        problem._tag === "UpstreamRejected" || problem._tag === "BooksUnavailable"
          ? Effect.fail(problem)
          : firstOf(others, attempt)
      )
}

type Answer = (
  upstream: Upstream,
  request: Wire.WireRequest,
  admission: Admission,
  model: Model,
  prompt: Prompt,
  inbound: Inbound
) => Effect.Effect<Metered<Reply>, UpstreamProblem | BooksUnavailable>

const complete: Answer = Effect.fnUntraced(function* (upstream, request, admission, model, prompt, inbound) {
  const abort: Wire.Abort = {}
  inbound.onGone(() => setTimeout(() => abort.abort?.(), Relay.readOnFor).unref())
  const answer = yield* Effect.catchAll(
    upstream.wire(admission).exchange(request, answerBytesMax, abort),
    ({ reason }) => failed(upstream.name, reason, inbound.request_id)
  )
  if (answer.status < 200 || answer.status > 299) return yield* refused(upstream.name, answer, inbound.request_id)
  const parsed = parse(answer.body.toString("utf8"))
  if (parsed === undefined) return yield* failed(upstream.name, "its answer is not a JSON object", inbound.request_id)
  // Some upstreams say 200 where they failed.
  if (Relay.isFailure(parsed) || !Array.isArray(parsed.choices)) {
    const reason = messageOf(parsed) ?? "it does not say why"
    return yield* failed(upstream.name, `its answer has an error, or no choices: ${reason}`, inbound.request_id)
  }

  const tokens = ofProvider(parsed.usage) ?? estimated(prompt.prompt_tokens_max, answerTokens(parsed.choices))
  return yield* admission.answer(measured(model, tokens, upstream), ({ collected }) => ({
    status: 200,
    headers: { "content-type": "application/json", "x-charge-usd": toDecimal(collected) },
    body: answer.body
  }))
})

const stream: Answer = Effect.fnUntraced(function* (upstream, request, admission, model, prompt, inbound) {
  const unreachable = ({ reason }: Wire.Unreachable) => failed(upstream.name, reason, inbound.request_id)
  const answer = yield* Effect.catchAll(upstream.wire(admission).open(request), unreachable)
  if (answer.status < 200 || answer.status > 299) {
    const whole = yield* Effect.catchAll(Wire.collect(answer, refusalBytesMax), unreachable)
    return yield* refused(upstream.name, whole, inbound.request_id)
  }
  const type = Wire.header(answer.headers, "content-type") ?? "nothing"
  if (!/^text\/event-stream\b/i.test(type)) {
    answer.abort()
    return yield* failed(upstream.name, `asked for a stream, it answered ${type}`, inbound.request_id)
  }
  const relay = Relay.make(answer, prompt)
  const settled = Effect.flatMap(relay.ended, (ending) =>
    Effect.matchCause(admission.settle(measuredOf(ending, model, prompt, upstream)), {
      onFailure: relay.cut,
      onSuccess: () => relay.finish(ending)
    })
  )
  return yield* admission.goOn(
    { status: 200, headers: { "content-type": "text/event-stream", "cache-control": "no-cache" }, body: relay.body },
    settled
  )
})

// ---- what is charged ------------------------------------------------------------------------------------------------------

/** A call that ran to its end. Written out rather than spread, being made for every call. */
const measured = (model: Model, tokens: Tokens, upstream: Upstream, error_type: string | null = null): Measured => ({
  cost: costOf(model, tokens),
  prompt_tokens: tokens.prompt_tokens,
  completion_tokens: tokens.completion_tokens,
  units: tokens.prompt_tokens + tokens.completion_tokens,
  provider: upstream.name,
  success: error_type !== "upstream_error",
  error_type,
  usage_source: tokens.usage_source
})

const nothing: Tokens = { prompt_tokens: 0, completion_tokens: 0, usage_source: "none" }

const measuredOf = (ending: Relay.Ending, model: Model, prompt: Prompt, upstream: Upstream): Measured => {
  const told = ofProvider(ending.usage)
  const seen = () => estimated(prompt.prompt_tokens_max, ending.tokens_seen)
  switch (ending.how) {
    case "complete":
      return measured(model, told ?? seen(), upstream)
    case "left":
      return measured(model, told ?? seen(), upstream, "client_disconnected")
    case "broken":
      // What the upstream reported before it broke is charged, and nothing else.
      return measured(model, told ?? nothing, upstream, "upstream_error")
  }
}

/** Tokens of a whole answer that came without usage. */
const answerTokens = (choices: ReadonlyArray<unknown>): number =>
  choices.reduce<number>((sum, choice) => {
    const said = isObject(choice) ? (choice.message ?? choice) : ""
    return sum + Math.ceil(JSON.stringify(said).length / bytesAToken)
  }, 0)

// ---- what can go wrong ------------------------------------------------------------------------------------------------------

const refusalBytesMax = 1024 * 1024

const unknownModel = (name: string) =>
  new InvalidRequest({
    error: `model: there is no model ${JSON.stringify(name.slice(0, 100))}; GET /v1/models lists them`,
    details: { field: "model", rule: "a model of GET /v1/models" }
  })
