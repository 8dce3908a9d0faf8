/** Tries several routes for a call, one after the other. */
import { Data, Effect } from "effect"
import type { Admission, Measured } from "../../books/gate/Gate.ts"
import type { Busy } from "../../kernel/Busy.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { LongMembers, Place } from "../../kernel/JsonOutline.ts"
import type { Room } from "../../kernel/Room.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { failed as upstreamFailed, isRefusal, readJson, refused, unanswered } from "../wire/Failures.ts"
import type { UpstreamProblem } from "../wire/Failures.ts"
import { reportsIn } from "../wire/Intake.ts"
import type { UpstreamFailed } from "../wire/Problems.ts"
import { vendorRequestOf } from "../wire/Wire.ts"
import type { WireRequest } from "../wire/Wire.ts"
import type { ProtocolName } from "./Protocol.ts"
import type { Upstream } from "./Upstreams.ts"

/** The response was charged but is unusable. No other upstream is tried, because that would charge the caller twice. */
export class Spent extends Data.TaggedError("Spent")<{ readonly problem: UpstreamFailed }> {}

/** Charges the call for an unusable response and fails with `Spent`, which contains the caller's problem. */
export const spent = (
  upstream: Upstream,
  admission: Admission,
  measured: Measured,
  reason: string,
  request_id: string | undefined
): Effect.Effect<never, Spent | BooksUnavailable> =>
  Effect.zipRight(
    admission.settle({ ...measured, success: false, error_type: "upstream_error" }),
    Effect.mapError(upstreamFailed(upstream.name, reason, request_id), (problem) => new Spent({ problem }))
  )

/** The failure reason for a response that exceeds the size limit. */
export const tooLong = "the response is too long"

export interface Watch<Way, E> {
  /** Runs before each further attempt. */
  readonly goesOn: (problem: E) => Effect.Effect<void>
  /** Called after each failed attempt. */
  readonly failed?: ((way: Way, problem: E | Spent) => void) | undefined
}

/**
 * Tries the routes in order. The next route is tried only if it might avoid the failure, and never after a response has begun. If a route cannot send
 * the request (`InvalidRequest`), the failure of an earlier route (`before`) is returned instead. If the caller has disconnected, the call fails with
 * the interruption. `isLast` is true for the last route.
 */
export const firstOf = <Way, A, E extends UpstreamProblem | BooksUnavailable | Busy | InvalidRequest>(
  ways: ReadonlyArray<Way>,
  attempt: (way: Way, isLast: boolean) => Effect.Effect<A, E | Spent>,
  { failed, goesOn }: Watch<Way, E>,
  before?: E
): Effect.Effect<A, E | UpstreamFailed> => {
  const [first, ...others] = ways
  return Effect.catchAll(attempt(first!, others.length === 0), (problem): Effect.Effect<A, E | UpstreamFailed> => {
    failed?.(first!, problem)
    if (problem._tag === "Spent") return Effect.interruptible(Effect.fail((problem as Spent).problem))
    // The upstream has responded, so another attempt would charge the caller twice.
    if (problem._tag === "BooksUnavailable" || problem._tag === "Busy") return Effect.fail(problem)
    const said = problem._tag === "InvalidRequest" ? (before ?? problem) : problem
    return problem._tag === "UpstreamRejected" || others.length === 0
      ? Effect.interruptible(Effect.fail(said))
      : Effect.zipRight(
          Effect.zipRight(stillThere, goesOn(problem as E)),
          firstOf(others, attempt, { failed, goesOn }, said)
        )
  })
}

/** Fails with the interruption if the caller has disconnected. */
export const stillThere = Effect.interruptible(Effect.void)

export const answerBytesMax = 64 * 1024 * 1024

/** A complete response that is a JSON object, as bytes and as a value. */
export interface Answered {
  readonly bytes: Buffer
  /** The value, or the outline of a long response. */
  readonly body: Readonly<Record<string, unknown>>
  /** For a long response, the byte positions of the values that are empty in `body`. */
  readonly emptied: ReadonlyArray<Place> | undefined
  /** Whether the bytes were dropped because they did not fit in memory. */
  readonly lost: boolean
}

export interface Question {
  readonly protocol: ProtocolName
  /** The path relative to the upstream's address. */
  readonly path: string
  readonly body: NonNullable<WireRequest["body"]>
  /** Returns the fault of a 2xx response, for the log, or `undefined` if it has none. */
  readonly faultIn: (body: Answered["body"]) => string | undefined
  /**
   * Measures the cost of a faulty response. Returns `undefined` if the response reports no usage. `body` is an outline if the response is too long,
   * or the members that report usage if it is not JSON.
   */
  readonly costOf: (body: Answered["body"], isTooLong: boolean) => Measured | undefined
  readonly request_id: string | undefined
  /** The byte budget for the response; unlimited by default. */
  readonly room?: Room | undefined
  /** The members that can be long. In a long response, `faultIn` receives them empty. */
  readonly long?: LongMembers | undefined
}

/** Requests a JSON object from one upstream. Fails with `Spent` if the response is unusable but has a cost. */
export const ask = Effect.fnUntraced(function* (
  upstream: Upstream,
  admission: Admission,
  { body, costOf, faultIn, long, path, protocol, request_id, room }: Question
): Effect.fn.Return<Answered, UpstreamProblem | BooksUnavailable | Spent> {
  const request = { method: "POST", path, headers: upstream.headersFor(protocol), body } as const
  const answer = yield* Effect.catchAll(
    upstream.wire(admission).exchange(request, { limit: answerBytesMax, room, long, read_on: admission.to_its_end }),
    (none) => unanswered(upstream.name, none, request_id)
  )
  admission.servedAs(vendorRequestOf(answer.headers))
  if (isRefusal(answer)) return yield* refused(upstream.name, answer, request_id)
  const { lost, outline } = answer
  const isTooLong = lost === "too_long"
  const read = outline === undefined ? readJson(answer.body) : undefined
  const parsed = outline === undefined ? read?.value : outline.value
  const fault = isTooLong ? tooLong : parsed === undefined ? "the response is not a JSON object" : faultIn(parsed)
  if (fault === undefined)
    return { bytes: read?.bytes ?? answer.body, body: parsed!, emptied: outline?.emptied, lost: lost !== undefined }
  const cost = costOf(parsed ?? reportsIn(answer), isTooLong)
  return yield* cost === undefined
    ? upstreamFailed(upstream.name, fault, request_id)
    : spent(upstream, admission, cost, fault, request_id)
})
