/**
 * Chooses the calls to request from a vendor whose bill lists none, and explains the difference of a day and model by its calls. The functions are
 * pure. The differences for a day and model add up exactly to the bill minus the expected cost.
 */
import { Either } from "effect"
import type { Nano } from "../../kernel/Money.ts"
import type { BilledLine } from "../../upstream/billing/Bill.ts"
import { joinCalls } from "./CallJoin.ts"
import { magnitude, sumOf } from "./Reconciliation.ts"
import type { Cause, Compared, Difference, MeteredCall } from "./Reconciliation.ts"

type DayAndModel = Pick<Compared, "day" | "model">

export const keyOf = ({ day, model }: DayAndModel): string => `${day}\n${model}`

/** A day and model with its metered calls, and the vendor's ids to request or the reason to request none. */
export interface Chosen {
  readonly compared: Compared
  readonly calls: ReadonlyArray<MeteredCall>
  readonly ids: Either.Either<ReadonlyArray<string>, string>
}

/** Returns a call's ids at the vendor, including those of its failed attempts. */
const idsOf = ({ call, retried }: MeteredCall): ReadonlyArray<string> =>
  call === undefined ? retried : [...retried, call]

/**
 * Chooses the calls to request, by day and then by model, until `max` ids are chosen. Leaves out a day and model with more ids than remain. `found`
 * contains the metered calls by `keyOf`. A failed call without an id may never have reached the vendor, so it does not prevent the requests.
 */
export const chosenCalls = (
  compared: ReadonlyArray<Compared>,
  found: ReadonlyMap<string, ReadonlyArray<MeteredCall>>,
  max: number
): ReadonlyArray<Chosen> => {
  let left = max
  return compared
    .filter((one) => found.has(keyOf(one)))
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    .map((one) => {
      const calls = found.get(keyOf(one))!
      const ids = [...new Set(calls.flatMap(idsOf))]
      if (calls.length > max || ids.length > left)
        return { compared: one, calls, ids: Either.left(`at most ${max} calls are requested per comparison`) }
      if (ids.length === 0 || calls.some(({ call, failed }) => call === undefined && failed === 0))
        return { compared: one, calls, ids: Either.left("some calls have no id from the vendor") }
      left -= ids.length
      return { compared: one, calls, ids: Either.right(ids) }
    })
}

const countOf = <A>(list: ReadonlyArray<A>, amountOf: (one: A) => number): number =>
  list.reduce((sum, one) => sum + amountOf(one), 0)

const tokensOf = (lines: ReadonlyArray<BilledLine>): number =>
  countOf(lines, ({ kind, quantity }) => (kind === "all" || kind === "request" ? 0 : (quantity ?? 0)))

const requestsOf = (lines: ReadonlyArray<BilledLine>): number => countOf(lines, ({ requests = 0 }) => requests)

const resolutionOf = (lines: ReadonlyArray<BilledLine>): Nano =>
  sumOf(lines, ({ amount, resolution }) => (amount === null ? 0n : resolution))

/** Finds the cause of `requests` billed requests beyond the described calls. `described` contains the ids that the vendor knows. */
const causeOfMore = (requests: number, calls: ReadonlyArray<MeteredCall>, described: ReadonlySet<string>): Cause => {
  const failed = countOf(calls, ({ call, failed: count }) => (call !== undefined && described.has(call) ? 0 : count))
  const retried = countOf(calls, (one) => one.retried.filter((id) => !described.has(id)).length)
  if (failed >= requests) return "failed_here"
  if (retried >= requests) return "retry"
  return failed + retried >= requests ? "failed_here" : "coverage"
}

/**
 * Explains the difference of a day and model by its calls. `bill` contains the bill's lines of the day and model, `calls` all their metered calls, and
 * `lines` the vendor's lines for these calls. Fails with a reason if the vendor does not know a call and the calls that it knows do not account for the
 * bill.
 */
export const explainedByCalls = (
  { billed, day, expected, model }: Compared,
  bill: ReadonlyArray<BilledLine>,
  calls: ReadonlyArray<MeteredCall>,
  lines: ReadonlyArray<BilledLine>
): Either.Either<ReadonlyArray<Difference>, string> => {
  // The vendor may state another day and another name of the model for a call.
  const own = lines.map((line) => ({ ...line, day, model }))
  const { differences } = joinCalls(calls, own, { first: day, last: day })
  const left = billed - expected - sumOf(differences, ({ amount }) => amount)
  if (left === 0n) return Either.right(differences)
  const rest = (cause: Cause, quantity: number | null, note: string | null) =>
    Either.right([
      ...differences,
      { day, model, kind: "all" as const, cause, amount: left, quantity, note, call: null, usage_id: null }
    ])
  const described = new Set(lines.map(({ call }) => call!))
  const unknown = calls.filter(({ call, failed }) => failed === 0 && call !== undefined && !described.has(call)).length
  const requests = requestsOf(bill) - described.size
  const tokens = tokensOf(bill) - tokensOf(lines)
  // Both the calls' amounts and their sum were rounded.
  const tolerance = resolutionOf(bill) + resolutionOf(lines) + BigInt(calls.length) + 1n
  const isSmall = magnitude(left) <= tolerance
  // A cheap call may cost less than the tolerance.
  if (isSmall && (left < 0n || requests <= 0 || tokens <= 0)) return rest("rounding", null, null)
  // A call that the vendor does not know may be in the bill under another id.
  if (left > 0n && unknown > 0) return Either.left(`the vendor does not know ${unknown} of ${calls.length} calls`)
  const cause = left > 0n && requests > 0 ? causeOfMore(requests, calls, described) : "unexplained"
  return rest(cause, tokens, `${requestsOf(bill)} billed requests, ${described.size} described calls`)
}

/** Adds the reason for keeping the differences of a day and model to their notes. `reasons` contains the reasons by `keyOf`. */
export const withReason = (difference: Difference, reasons: ReadonlyMap<string, string>): Difference => {
  const reason = reasons.get(keyOf(difference))
  if (reason === undefined) return difference
  return { ...difference, note: difference.note === null ? reason : `${difference.note}; ${reason}` }
}
