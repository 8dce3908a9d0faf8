/**
 * Requests single calls from the vendor to explain differences between a bill without calls and the metered calls. OpenRouter's bill is such a bill.
 *
 * Where the specification is silent:
 * - Only the calls of days and models with a difference are requested, at most 1,000 per comparison, by day and then by model. A difference in rounding
 *   or time zone is not looked into.
 * - A day and model keep their own differences, with the reason in a note, if they have too many calls or a call without the vendor's id, or if the
 *   vendor does not know a call and the others do not account for the bill. The calls of such a day and model are not requested in part.
 * - The bill's requests beyond the described calls are joined as in `Join`: with failed calls first, then with retried attempts, as far as the vendor
 *   described neither. Any others are `coverage`. A failed call without the vendor's id may never have reached the vendor.
 * - A remaining amount without remaining requests is `unexplained`.
 * - If the vendor fails, the remaining days and models keep their differences. The bill itself was read, so the comparison does not fail.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Either } from "effect"
import { day as dayMillis, parse, toDay } from "../../kernel/Moment.ts"
import type { Model } from "../../calls/prompts/Model.ts"
import { eachVendorCall } from "../../money/usage/VendorCalls.ts"
import type { BilledLine, BillWindow } from "../../upstream/billing/Bill.ts"
import { billingApis } from "../../upstream/billing/Vendors.ts"
import { grouped } from "./Join.ts"
import { meteredCallOf, servedLookup } from "./Metering.ts"
import { nameLookup } from "./ModelNames.ts"
import { callsOf } from "./Pages.ts"
import type { Cause, Compared, Difference, Joined, MeteredCall } from "./Reconciliation.ts"
import type { BillingVendor } from "./Settings.ts"
import { chosenCalls, explainedByCalls, keyOf, withReason } from "./SingleCalls.ts"

interface ExplainParts {
  readonly sql: SqlClient
  readonly models: ReadonlyArray<Model>
}

/** The maximum number of calls requested per comparison. */
const callsMax = 1_000

const isSettled = (cause: Cause): boolean => cause === "rounding" || cause === "not_usage"

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

/** Returns the bill's lines by day and model, with the names of models in the comparison. */
const billBy = (lines: ReadonlyArray<BilledLine>, compared: ReadonlyArray<Compared>) => {
  const nameOf = nameLookup(new Set(compared.map(({ model }) => model)))
  return grouped(lines, ({ day, model }) => keyOf({ day, model: nameOf(model) }))
}

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
  const bill = billBy(lines, joined.compared)
  const byCall = new Map<string, ReadonlyArray<Difference>>()
  const reasons = new Map<string, string>()
  let isFailing = false
  for (const { calls, compared, ids } of chosenCalls(joined.compared, found, callsMax)) {
    const key = keyOf(compared)
    if (Either.isLeft(ids)) {
      reasons.set(key, ids.left)
      continue
    }
    const billed = isFailing ? undefined : yield* Effect.either(callsOf(vendor, api, api.call, ids.right))
    if (billed === undefined || Either.isLeft(billed)) {
      if (billed !== undefined) yield* Effect.logWarning(`single calls were not read: ${billed.left.message}`)
      isFailing = true
      reasons.set(key, "the vendor failed to describe its calls")
      continue
    }
    const differences = explainedByCalls(compared, bill.get(key) ?? [], calls, billed.right)
    if (Either.isLeft(differences)) reasons.set(key, differences.left)
    else byCall.set(key, differences.right)
  }
  const kept = joined.differences.filter((difference) => !byCall.has(keyOf(difference)))
  return {
    compared: joined.compared,
    differences: [...kept.map((one) => withReason(one, reasons)), ...[...byCall.values()].flat()]
  }
})
