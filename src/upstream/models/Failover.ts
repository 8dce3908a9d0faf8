/** Several ways to the same answer: the next is tried where it might do better. */
import { Data, Effect } from "effect"
import type { Admission, Measured } from "../../books/gate/Gate.ts"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import { generated } from "../../protocols/conversation/Gist.ts"
import { failed, parse, refused } from "../wire/Failures.ts"
import type { UpstreamProblem } from "../wire/Failures.ts"
import type { UpstreamFailed } from "../wire/Problems.ts"
import type { ProtocolName } from "./Protocol.ts"
import type { Upstream } from "./Upstreams.ts"

/** The answer was charged but is unusable. Trying another upstream would charge the caller twice. */
export class Spent extends Data.TaggedError("Spent")<{ readonly problem: UpstreamFailed }> {}

/** Settles a call whose answer is unusable at its cost. The caller gets an upstream failure. */
export const spent = (
  upstream: Upstream,
  admission: Admission,
  measured: Measured,
  reason: string,
  request_id: string | undefined
): Effect.Effect<never, Spent | BooksUnavailable> =>
  Effect.zipRight(
    admission.settle({ ...measured, success: false, error_type: "upstream_error" }),
    Effect.mapError(failed(upstream.name, reason, request_id), (problem) => new Spent({ problem }))
  )

/** The failure reason of an answer above the size limit. */
export const tooLong = "its answer is too long to be handed on"

/**
 * Tries the ways in order. Only what the next one might do better goes on to it; nothing does once an answer has begun. A way that cannot
 * carry the request (`InvalidRequest`) is passed over: what an earlier one failed with stays the answer. A caller that has left hears of no
 * failure: the call ends with the interruption. `isLast`: there is no next one.
 */
export const firstOf = <Way, A, E extends UpstreamProblem | BooksUnavailable | InvalidRequest>(
  ways: ReadonlyArray<Way>,
  attempt: (way: Way, isLast: boolean) => Effect.Effect<A, E | Spent>,
  before?: E
): Effect.Effect<A, E | UpstreamFailed> => {
  const [first, ...others] = ways
  return Effect.catchAll(attempt(first!, others.length === 0), (problem): Effect.Effect<A, E | UpstreamFailed> => {
    if (problem._tag === "Spent") return Effect.interruptible(Effect.fail((problem as Spent).problem))
    // The upstream did answer; what it cost is on its way into the books.
    if (problem._tag === "BooksUnavailable") return Effect.fail(problem)
    const said = problem._tag === "InvalidRequest" ? (before ?? problem) : problem
    return problem._tag === "UpstreamRejected" || others.length === 0
      ? Effect.interruptible(Effect.fail(said))
      : Effect.zipRight(stillThere, firstOf(others, attempt, said))
  })
}

/** Fails with the interruption of a caller that has left. */
const stillThere = Effect.interruptible(Effect.void)

/** The longest answer. */
export const answerBytesMax = 64 * 1024 * 1024

/** A whole answer that is a JSON object: its bytes, and what they say. */
export interface Answered {
  readonly bytes: Buffer
  readonly body: Readonly<Record<string, unknown>>
}

export interface Question {
  readonly protocol: ProtocolName
  /** Below the upstream's address. */
  readonly path: string
  readonly body: string | Buffer
  /** What is wrong with an answer of a 2xx status, for the log; `undefined` where it is an answer. */
  readonly faultIn: (body: Answered["body"]) => string | undefined
  /** What an answer costs that is of no use; `undefined` where it reports nothing. One that is too long has its gist for a body. */
  readonly costOf: (body: Answered["body"], isTooLong: boolean) => Measured | undefined
  readonly request_id: string | undefined
}

/** Asks one upstream for a JSON object. */
export const ask = Effect.fnUntraced(function* (
  upstream: Upstream,
  admission: Admission,
  { body, costOf, faultIn, path, protocol, request_id }: Question
): Effect.fn.Return<Answered, UpstreamProblem | BooksUnavailable | Spent> {
  const request = { method: "POST", path, headers: upstream.headersFor(protocol), body } as const
  const answer = yield* Effect.catchAll(
    upstream
      .wire(admission)
      .exchange(request, { limit: answerBytesMax, gist: generated, read_on: admission.to_its_end }),
    ({ reason }) => failed(upstream.name, reason, request_id)
  )
  if (answer.status < 200 || answer.status > 299) return yield* refused(upstream.name, answer, request_id)
  const isTooLong = answer.gist !== undefined
  const parsed = answer.gist?.object ?? parse(answer.body)
  if (parsed === undefined) return yield* failed(upstream.name, "its answer is not a JSON object", request_id)
  const fault = isTooLong ? tooLong : faultIn(parsed)
  if (fault === undefined) return { bytes: answer.body, body: parsed }
  const cost = costOf(parsed, isTooLong)
  return yield* cost === undefined
    ? failed(upstream.name, fault, request_id)
    : spent(upstream, admission, cost, fault, request_id)
})
