/**
 * Requests single calls from the vendor to explain differences between a bill without calls and the metered calls. OpenRouter's bill is such a bill.
 *
 * Where the specification is silent:
 * - Only the calls of days and models with a difference are requested, at most 1,000 per comparison. A difference in rounding or time zone is not
 *   looked into.
 * - A day and model keep their own differences if they have too many calls or a call without the vendor's id, or if the calls do not explain the bill.
 * - If the vendor fails, the remaining days and models keep their differences. The bill itself was read, so the comparison does not fail.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Either } from "effect"
import { day as dayMillis, parse, toDay } from "../../kernel/Moment.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Model } from "../../calls/prompts/Model.ts"
import { eachVendorCall } from "../../money/usage/VendorCalls.ts"
import type { BilledLine, BillWindow } from "../../upstream/billing/Bill.ts"
import { billingApis } from "../../upstream/billing/Vendors.ts"
import { explainedByCalls } from "./CallJoin.ts"
import { meteredCallOf, servedLookup } from "./Metering.ts"
import { callsOf } from "./Pages.ts"
import type { Cause, Difference, Joined, MeteredCall } from "./Reconciliation.ts"
import type { BillingVendor } from "./Settings.ts"

interface ExplainParts {
  readonly sql: SqlClient
  readonly models: ReadonlyArray<Model>
}

/** The maximum number of calls requested per comparison. */
const callsMax = 1_000

const isSettled = (cause: Cause): boolean => cause === "rounding" || cause === "not_usage"

const keyOf = ({ day, model }: { readonly day: string; readonly model: string }): string => `${day}\n${model}`

/** Returns the keys of the days and models whose differences single calls could explain. */
const unexplainedIn = (differences: ReadonlyArray<Difference>): ReadonlySet<string> => {
  const shifted = new Set(differences.filter(({ cause }) => cause === "time_zone").map(({ model }) => model))
  const found = differences.filter(({ cause, model }) => !isSettled(cause) && !shifted.has(model))
  return new Set(found.map(keyOf))
}

/** Reads the metered calls of these days and models. Stops collecting a day and model after more calls than may be requested. */
const callsIn = ({ models, sql }: ExplainParts, vendor: BillingVendor, window: BillWindow, keys: ReadonlySet<string>) =>
  Effect.suspend(() => {
    const servedOf = servedLookup(models)
    const found = new Map<string, Array<MeteredCall>>()
    return Effect.as(
      eachVendorCall(sql, parse(window.first)!, parse(window.last)! + dayMillis, (call) => {
        if (!vendor.upstreams.has(call.provider)) return
        const one = meteredCallOf(call, servedOf(call))
        const key = keyOf({ day: toDay(one.hour), model: one.model })
        if (!keys.has(key)) return
        const calls = found.get(key) ?? []
        if (calls.length <= callsMax) calls.push(one)
        found.set(key, calls)
      }),
      found
    )
  })

/** Returns the ids to request, or `undefined` if a call has none. A failed call may never have reached the vendor. */
const idsOf = (calls: ReadonlyArray<MeteredCall>): ReadonlyArray<string> | undefined =>
  calls.some(({ call, failed }) => call === undefined && failed === 0)
    ? undefined
    : [...new Set(calls.flatMap(({ call, retried }) => (call === undefined ? retried : [call, ...retried])))]

const resolutionOn = (lines: ReadonlyArray<BilledLine>, on: string): Nano =>
  lines.reduce((sum, { amount, day, resolution }) => (day === on && amount !== null ? sum + resolution : sum), 0n)

/** Replaces the differences of days and models by those of their calls, where the calls explain the bill. `lines` is the bill. */
export const explained = Effect.fnUntraced(function* (
  parts: ExplainParts,
  vendor: BillingVendor,
  window: BillWindow,
  lines: ReadonlyArray<BilledLine>,
  joined: Joined
): Effect.fn.Return<Joined> {
  const api = vendor.api === undefined ? undefined : billingApis[vendor.api]
  const keys = api?.call === undefined ? new Set<string>() : unexplainedIn(joined.differences)
  if (api?.call === undefined || keys.size === 0) return joined
  const found = yield* callsIn(parts, vendor, window, keys)
  const byCall = new Map<string, ReadonlyArray<Difference>>()
  let left = callsMax
  for (const compared of joined.compared) {
    const calls = found.get(keyOf(compared))
    const ids = calls === undefined ? undefined : idsOf(calls)
    if (calls === undefined || ids === undefined || ids.length === 0 || ids.length > left) continue
    left -= ids.length
    const billed = yield* Effect.either(callsOf(vendor, api, api.call, ids))
    if (Either.isLeft(billed)) {
      yield* Effect.logWarning(`single calls were not read: ${billed.left.message}`)
      break
    }
    const differences = explainedByCalls(compared, resolutionOn(lines, compared.day), calls, billed.right)
    if (differences !== undefined) byCall.set(keyOf(compared), differences)
  }
  return {
    compared: joined.compared,
    differences: [
      ...joined.differences.filter((difference) => !byCall.has(keyOf(difference))),
      ...[...byCall.values()].flat()
    ]
  }
})
