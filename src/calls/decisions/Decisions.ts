/**
 * Asks one model typed questions, without retries. If the model rejects a call, the call fails with `DecisionRefused`. Other upstream failures are
 * `DecisionUpstreamFailed` and `DecisionUpstreamUnreachable`.
 */
import { Context, Effect, Layer } from "effect"
import { failure, Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Measured, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import { Busy, busyFor, noRoomForAnswer } from "../../kernel/Busy.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { usageOf } from "../../kernel/Ids.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Nano } from "../../kernel/Money.ts"
import { affordable, charge } from "../../kernel/Price.ts"
import { usualResponseBytes } from "../../kernel/Room.ts"
import type { Room } from "../../kernel/Room.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { tooLong } from "../../upstream/models/Failover.ts"
import { isObject, readJson } from "../../upstream/wire/Failures.ts"
import { reportsIn } from "../../upstream/wire/Intake.ts"
import { upstreamLookup } from "../../upstream/models/Upstreams.ts"
import type { Upstream } from "../../upstream/models/Upstreams.ts"
import * as Wire from "../../upstream/wire/Wire.ts"
import { movable, parsedMax, readOnThread } from "../threads/BodyThreads.ts"
import { bufferOf } from "../threads/Task.ts"
import type { DecisionDone, OwnMembers, ReadDecisionTask } from "./BodyTask.ts"
import { bodyFor, reservation } from "./Decision.ts"
import type { DecisionRequest } from "./Decision.ts"
import { ConfiguredDecisionModel } from "./Settings.ts"
import type { DecisionModel } from "./Settings.ts"
import {
  DecisionRefused,
  DecisionsUnavailable,
  DecisionUpstreamFailed,
  DecisionUpstreamUnreachable
} from "./Problems.ts"

export interface DecisionCall {
  readonly caller: Caller
  readonly request: DecisionRequest
  /** The route's name in usage records; `decisions` by default. */
  readonly endpoint?: string | undefined
  /** Statements committed together with the call's admission. */
  readonly beside?: Claim["beside"]
  /**
   * Memory for the response. If none is free, the call fails with `Busy` before the model is called. If the response does not fit, the call is
   * charged and fails with `Busy`.
   */
  readonly room?: Room | undefined
  readonly request_id?: string | undefined
}

export interface Decision {
  /** The answers, by question id. */
  readonly answers: Readonly<Record<string, unknown>>
  readonly id: string
  readonly model: string
  readonly provider: string
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly cost: Nano }
  readonly receipt: Receipt
  /** The model's complete response, including unknown members. */
  readonly upstream: UpstreamAnswer
}

export interface UpstreamAnswer {
  /** The HTTP status, 200 to 299. */
  readonly status: number
  readonly retry_after: string | undefined
  readonly body: Readonly<Record<string, unknown>>
  /** A long body's parts. Reading `body` parses all of it. */
  readonly long?: LongBodyParts | undefined
}

export interface LongBodyParts {
  /** The members that the service changes. */
  readonly own: OwnMembers
  /** The body's JSON without these members. */
  readonly rest: Buffer
}

export type DecisionProblem =
  | InvalidRequest
  | Busy
  | DecisionsUnavailable
  | GateRefusal
  | BooksUnavailable
  | DecisionRefused
  | DecisionUpstreamFailed
  | DecisionUpstreamUnreachable

export interface DecisionsContract {
  readonly model: Effect.Effect<DecisionModel, DecisionsUnavailable>
  /** Calls the model once, with a timeout of 30 seconds. Reserves 0.30 USD and charges for the input tokens. */
  readonly decide: (call: DecisionCall) => Effect.Effect<Decision, DecisionProblem>
}

/** The time limit for the model's complete response, in milliseconds. */
export const timeoutMillis = 30_000
const answerBytesMax = 8 * 1024 * 1024
/** Response members that may be long. */
const longMembers = { names: new Set(["answers"]), depth: 1 }

export class Decisions extends Context.Tag("tollgate/decisions/Decisions")<Decisions, DecisionsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Decisions, make))
}

interface Parts {
  readonly gate: Gate["Type"]
  readonly model: DecisionModel
  readonly upstream: Upstream
  readonly price: Claim["price"]
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const versions = yield* PriceVersions
  const model = yield* ConfiguredDecisionModel
  if (model === undefined) {
    const unavailable = new DecisionsUnavailable()
    return { model: unavailable, decide: () => unavailable } satisfies DecisionsContract
  }
  const upstreamOf = yield* upstreamLookup("decision model", [{ id: model.model, upstream: model.upstream }])
  const upstream = upstreamOf(model.upstream)
  const price = yield* versions.of([{ quantity: "prompt_tokens", unit: "token", price: model.input_price }])
  return { model: Effect.succeed(model), decide: decide({ gate, model, upstream, price }) } satisfies DecisionsContract
})

const decide = (parts: Parts): DecisionsContract["decide"] => {
  const { gate, model, price, upstream } = parts
  return ({ beside, caller, endpoint = "decisions", request, request_id, room }) =>
    Effect.flatMap(bodyFor(request, model), (body) => {
      if (room?.reserve(usualResponseBytes) === false) return new Busy({ retry_after: busyFor })
      const tokens = tokensMax(model, Buffer.byteLength(body))
      return gate.meter(
        {
          caller,
          usage_type: "inference",
          capability: "decisions",
          endpoint,
          model: model.model,
          provider: upstream.name,
          price,
          most: reservation,
          least: reservation,
          tokens: { least: tokens, most: tokens },
          beside,
          request_id
        },
        (admission) => ask(parts, admission, body, { caller, request_id, room })
      )
    })
}

type CallContext = Pick<DecisionCall, "caller" | "request_id" | "room">

/** Calls the model and settles the call. */
const ask = Effect.fnUntraced(function* (parts: Parts, admission: Admission, body: string, context: CallContext) {
  const { model, upstream } = parts
  const { request_id, room } = context
  const request = { method: "POST", path: model.path, headers: upstream.headers, body } as const
  const answer = yield* upstream
    .wire(admission)
    .exchange(request, {
      limit: answerBytesMax,
      timeout: timeoutMillis,
      read_on: admission.to_its_end,
      room,
      long: longMembers
    })
    .pipe(
      Effect.catchAll(({ reason }) =>
        Effect.andThen(
          failed(upstream.name, reason, request_id),
          new DecisionUpstreamUnreachable({ upstream: upstream.name })
        )
      )
    )
  const { headers, lost, status } = answer
  admission.servedAs(Wire.vendorRequestOf(headers))
  if (status === 422 || status === 429 || status === 529) {
    const refusal = refusalOf(answer, status)
    yield* admission.settle(failure(refusal.error_type))
    return yield* refusal
  }
  if (status < 200 || status > 299) {
    yield* failed(upstream.name, `status ${status}`, request_id)
    return yield* DecisionUpstreamFailed.of(upstream.name, status)
  }
  const read = lost === undefined ? yield* bodyOf(answer, context.caller.account_id) : undefined
  if (read === undefined || "fault" in read)
    return yield* unusable(parts, admission, Buffer.byteLength(body), answer, read?.fault, request_id)
  const measured = measuredOf(model, ownMembersOf(read).usage, Buffer.byteLength(body))
  return yield* admission.answer(measured, (receipt) =>
    decisionOf(
      parts,
      admission,
      measured,
      receipt,
      Object.assign(read, {
        status,
        retry_after: Wire.header(headers, "retry-after")
      })
    )
  )
})

type Body = Omit<UpstreamAnswer, "status" | "retry_after">

interface Faulty {
  /** The defect that makes the body unusable. */
  readonly fault: string
}

/** Reads the model's body. A separate thread reads a long one. Returns `undefined` if the body was lost. */
const bodyOf = (answer: Wire.Whole, account: string): Effect.Effect<Body | Faulty | undefined> => {
  if (answer.body.length > parsedMax) {
    const task: ReadDecisionTask = { how: "read_decision", body: movable(answer.body) }
    return Effect.map(readOnThread(task, account), (done) => {
      if (done === undefined) return undefined
      return done.fault === undefined ? new LongBody(done) : { fault: done.fault }
    })
  }
  const body = readJson(answer.body)?.value
  return Effect.succeed(body === undefined ? { fault: "the response is not a JSON object" } : { body })
}

/** A long body. Its JSON is parsed whenever `body` is read. */
class LongBody implements Body {
  readonly long: LongBodyParts

  constructor({ own, rest }: DecisionDone) {
    this.long = { own, rest: bufferOf(rest) }
  }

  get body(): Readonly<Record<string, unknown>> {
    return { ...(JSON.parse(this.long.rest.toString()) as object), ...this.long.own }
  }
}

/** Returns the members that the service changes, without parsing a long body. */
export const ownMembersOf = (answer: Body): OwnMembers => (answer.long === undefined ? answer.body : answer.long.own)

/**
 * Ends a call whose response cannot be delivered. If its bytes were lost, the call is charged by the response's outline and fails with `Busy`. A
 * response that is too long is always charged. A faulty response is charged only if it reports its usage.
 */
const unusable = Effect.fnUntraced(function* (
  { model, upstream }: Parts,
  admission: Admission,
  bytes: number,
  answer: Wire.Whole,
  fault: string | undefined,
  request_id: string | undefined
) {
  const { lost, outline, status } = answer
  const { usage } = reportsIn(answer)
  const measured = measuredOf(model, usage, bytes)
  if (fault === undefined && lost !== "too_long" && outline?.value !== undefined) {
    yield* admission.settle({ ...measured, error_type: "busy" })
    return yield* new Busy({ message: noRoomForAnswer, retry_after: busyFor })
  }
  if (lost !== undefined || isObject(usage))
    yield* admission.settle({ ...measured, success: false, error_type: "upstream_error" })
  const reason = fault ?? (lost === undefined ? "the response is not a JSON object" : tooLong)
  yield* failed(upstream.name, reason, request_id)
  return yield* DecisionUpstreamFailed.of(upstream.name, status)
})

const decisionOf = (
  { model, upstream }: Parts,
  admission: Admission,
  measured: Measured,
  receipt: Receipt,
  answer: UpstreamAnswer
): Decision => {
  const { id, model: named } = ownMembersOf(answer)
  return {
    get answers() {
      const { answers } = answer.body
      return isObject(answers) ? answers : {}
    },
    id: typeof id === "string" ? id : usageOf(admission.call),
    model: typeof named === "string" ? named : model.model,
    provider: upstream.name,
    usage: {
      input_tokens: measured.prompt_tokens,
      output_tokens: measured.completion_tokens,
      cost: receipt.charged
    },
    receipt,
    upstream: answer
  }
}

const failed = (upstream: string, reason: string, request_id: string | undefined) =>
  Effect.annotateLogs(Effect.logWarning("the decision model failed"), {
    upstream,
    reason,
    ...(request_id !== undefined && { request_id })
  })

const errorTypes = { 422: "upstream_rejected", 429: "upstream_rate_limited", 529: "upstream_overloaded" } as const

const refusalOf = ({ body, headers }: Wire.Whole, status: keyof typeof errorTypes): DecisionRefused =>
  new DecisionRefused({
    status,
    error_type: errorTypes[status],
    content_type: Wire.header(headers, "content-type") ?? "application/json",
    retry_after: Wire.header(headers, "retry-after"),
    body
  })

/**
 * Computes the usage and its charge. A reported input token count above `tokensMax` is charged as `tokensMax`. If the model reports no count, every
 * four bytes count as one token. Both cases are marked as estimated. Output tokens are free.
 */
const measuredOf = (model: DecisionModel, usage: unknown, bytes: number): Measured => {
  const { input_tokens, output_tokens } = isObject(usage) ? usage : {}
  const most = tokensMax(model, bytes)
  const reported = count(input_tokens, most)
  const prompt_tokens = reported ?? Math.min(most, isAbsent(input_tokens) ? Math.ceil(bytes / 4) : most)
  const answered = count(output_tokens, outputTokensMax)
  return {
    cost: charge([{ units: prompt_tokens, price: model.input_price }]),
    prompt_tokens,
    completion_tokens: answered ?? 0,
    units: prompt_tokens,
    provider: null,
    success: true,
    error_type: null,
    usage_source:
      reported === undefined || (answered === undefined && !isAbsent(output_tokens)) ? "estimated" : "provider"
  }
}

/** Returns the maximum input token count to charge: one token per byte plus the model's additions, capped by the reservation. */
const tokensMax = ({ input_price }: DecisionModel, bytes: number): number =>
  Math.min(bytes + tokensBeyondText, affordable(reservation, input_price))

/** Returns `value` if it is an integer from 0 to `most`, otherwise `undefined`. */
const count = (value: unknown, most: number): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= most ? value : undefined

const isAbsent = (value: unknown): boolean => value === undefined || value === null

/** The maximum number of tokens that the model can add to a request. */
const tokensBeyondText = 100_000
const outputTokensMax = 1_000_000
