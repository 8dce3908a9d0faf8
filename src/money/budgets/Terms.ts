/** Computes the terms of budgets that are created, changed or raised. */
import { Effect } from "effect"
import { units } from "../../books/ledger/rules/Budget.ts"
import type { BudgetLimit, BudgetTerms } from "../../books/ledger/rules/Budget.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { amountMax, toDecimal } from "../../kernel/Money.ts"
import type { BudgetChange, BudgetRaise, NewBudget } from "./Budget.ts"
import { TooManyRaises } from "./Problems.ts"
import { raisesMax } from "./Storage.ts"

export const newTerms = (
  { applies_to, limit, mode, name, notify_at, period }: NewBudget,
  by: Pick<BudgetTerms, "by_operator" | "created_by">,
  now: number
): BudgetTerms => {
  const { key: _, ...conditions } = applies_to
  return {
    name: name.trim(),
    limit,
    period,
    applies_to: conditions,
    mode,
    notify_at: ascending(notify_at),
    raises: [],
    created_at: now,
    ...by
  }
}

const ascending = (parts: ReadonlyArray<number>): ReadonlyArray<number> =>
  [...new Set(parts)].toSorted((one, other) => one - other)

/** Computes the terms after a change, without expired raises. Fails if the change contains a fixed field or leaves an invalid limit. */
export const changedTerms = (
  terms: BudgetTerms,
  change: BudgetChange,
  now: number
): Effect.Effect<BudgetTerms, InvalidRequest> => {
  for (const field of ["period", "applies_to"] as const)
    if (change[field] !== undefined)
      return InvalidRequest.of(
        field,
        "must be omitted, because it cannot change; create another budget and delete this one"
      )
  const limit = limitAfter(terms.limit, change.limit)
  if (units.every((unit) => limit[unit] === undefined))
    return InvalidRequest.of("limit", `must keep at least one of ${units.join(", ")}`)
  const raises = limit.usd === undefined ? [] : openRaises(terms, now)
  return within(
    {
      ...terms,
      name: change.name?.trim() ?? terms.name,
      limit,
      mode: change.mode ?? terms.mode,
      notify_at: change.notify_at === undefined ? terms.notify_at : ascending(change.notify_at),
      raises
    },
    "limit.usd"
  )
}

const limitAfter = (before: BudgetLimit, change: BudgetChange["limit"] = {}): BudgetLimit =>
  Object.fromEntries(
    units.flatMap((unit) => {
      const value = change[unit] === undefined ? before[unit] : change[unit]
      return value === undefined || value === null ? [] : [[unit, value]]
    })
  )

const openRaises = ({ raises }: BudgetTerms, now: number) => raises.filter(({ until }) => until > now)

/** Adds a raise and removes expired raises. Fails if `until` has passed, the budget has no USD limit, or there are too many raises. */
export const raisedTerms = (
  terms: BudgetTerms,
  { until, usd }: BudgetRaise,
  now: number
): Effect.Effect<BudgetTerms, InvalidRequest | TooManyRaises> => {
  if (until <= now) return InvalidRequest.of("until", "must be in the future")
  if (terms.limit.usd === undefined)
    return InvalidRequest.of("usd", "must be omitted, because this budget has no limit in USD")
  const open = openRaises(terms, now)
  if (open.length >= raisesMax) return new TooManyRaises({ limit: raisesMax })
  return within({ ...terms, raises: [...open, { usd, until }] }, "usd")
}

/** Rejects terms if the limit and its raises together exceed the ledger's maximum. */
const within = (terms: BudgetTerms, field: string): Effect.Effect<BudgetTerms, InvalidRequest> => {
  const raised = terms.raises.reduce((sum, { usd }) => sum + usd, terms.limit.usd ?? 0n)
  return raised > amountMax
    ? InvalidRequest.of(field, `the limit with its raises must be at most ${toDecimal(amountMax)} USD`)
    : Effect.succeed(terms)
}

/** Returns a template budget's terms after the template changes. */
export const followingTerms = (
  before: BudgetTerms,
  { limit, mode, name, notify_at }: BudgetTerms,
  now: number
): BudgetTerms => ({
  ...before,
  name,
  limit,
  mode,
  notify_at,
  raises: limit.usd === undefined ? [] : openRaises(before, now)
})
