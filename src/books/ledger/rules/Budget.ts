/**
 * Budgets: their limits, their counters, and the calls that they count. A call's reservation is booked into every budget that counts the call,
 * and the settlement replaces it with the charge. Both are part of the call's own transactions. The spending limit of an API key is also a budget.
 *
 * Where the specification is silent:
 * - A budget counts the calls made with its tenant's credentials and the calls that its tenant pays for. An operator's budget can count the calls of
 *   all tenants.
 * - A budget starts counting when it is created. Only the spending limit of an API key counts earlier charges in its period.
 * - A request counts in the period of its admission, even if the call fails. A charge and its tokens count in the period of the settlement. If a call
 *   is open at the end of a period, its reservation also counts in the next one.
 * - A limit of 0 refuses every call, even one that costs nothing, unless it is the spending limit of a key. Any other limit refuses calls that need
 *   more than it has left.
 * - If several models and providers may serve a call, an exhausted budget for one of them excludes only that one. The call is refused if none
 *   remains. The charge counts against the budgets for the model and provider that served it.
 */
import type { Nano } from "../../../kernel/Money.ts"
import { day, hour, monthOf, nextMonthOf } from "../../../kernel/Moment.ts"
import type { ClaimedFacts, ServingRoute } from "./Transaction.ts"

export type BudgetPeriod = "minute" | "hour" | "day" | "week" | "month" | "total"

/** The units of limits, in the order of the checks. */
export const units = ["usd", "tokens", "requests", "concurrent"] as const
export type BudgetUnit = (typeof units)[number]

export interface BudgetLimit {
  /** In nano-USD. */
  readonly usd?: Nano | undefined
  readonly tokens?: number | undefined
  readonly requests?: number | undefined
  readonly concurrent?: number | undefined
}

/** The conditions for counting a call. A call must meet all of them. */
export interface AppliesTo {
  /** An account id. */
  readonly member?: string | undefined
  readonly model?: string | undefined
  readonly provider?: string | undefined
  readonly capability?: string | undefined
  /** A tag as `name=value`, or `name` for any value. */
  readonly tag?: string | undefined
  readonly end_user?: string | undefined
}

/** A temporary increase of the limit in USD. */
export interface Raise {
  readonly usd: Nano
  readonly until: number
}

export interface BudgetTerms {
  readonly name: string
  readonly limit: BudgetLimit
  readonly period: BudgetPeriod
  readonly applies_to: AppliesTo
  /** With `notify`, the budget counts calls but never refuses one. */
  readonly mode: "refuse" | "notify"
  /** The notification thresholds, as fractions of the limit in ascending order. */
  readonly notify_at: ReadonlyArray<number>
  readonly raises: ReadonlyArray<Raise>
  /** Whether the operator created the budget. If so, the tenant cannot change it. */
  readonly by_operator: boolean
  readonly created_by: string
  readonly created_at: number
}

/** A `key` budget is an API key's spending limit and has the key's id. A `run` budget contains a run's limits and has the run's id. */
export type BudgetKind = "key" | "run" | "budget"

export interface Budget {
  readonly id: string
  readonly kind: BudgetKind
  /** Absent if the budget counts all tenants. */
  readonly tenant_id: string | undefined
  /** The tenant, API key or run that its calls share; or `everyone`. */
  readonly anchor: string
  readonly terms: BudgetTerms
  /** The start of the period, as Unix time in milliseconds. */
  readonly start: number
  readonly spent: Nano
  readonly reserved: Nano
  /**
   * The maximum of `spent` + `reserved`: the limit, or more if the limit was lowered or a raise expired. Absent if the budget has no limit in USD or
   * only notifies.
   */
  readonly ceiling: Nano | undefined
  readonly tokens: number
  readonly tokens_reserved: number
  readonly requests: number
  /** The number of open calls. */
  readonly open: number
  /** The number of thresholds in `notify_at` reached in this period. */
  readonly crossed: number
}

/** The anchor of the budgets that count the calls of all tenants. */
export const everyone = "everyone"

/** Returns the start of the period that contains `at`. Weeks begin on Monday. */
export const periodStart = (period: BudgetPeriod, at: number): number => {
  switch (period) {
    case "minute":
      return at - (at % 60_000)
    case "hour":
      return at - (at % hour)
    case "day":
      return at - (at % day)
    case "week":
      // 1970 began on a Thursday.
      return at - ((at + 3 * day) % (7 * day))
    case "month":
      return monthOf(at)
    case "total":
      return 0
  }
}

/** Returns the end of the period that contains `at`, or `undefined` if the period never ends. */
export const renewsAt = (period: BudgetPeriod, at: number): number | undefined => {
  if (period === "total") return undefined
  if (period === "month") return nextMonthOf(at)
  return periodStart(period, at) + lengths[period]
}

const lengths = { minute: 60_000, hour, day, week: 7 * day }

/** Returns the limit in USD at `at`, including raises; `undefined` if there is none. */
export const usdLimit = ({ limit, raises }: BudgetTerms, at: number): Nano | undefined => {
  if (limit.usd === undefined || raises.length === 0) return limit.usd
  let usd = limit.usd
  for (const raise of raises) if (raise.until > at) usd += raise.usd
  return usd
}

/** Returns the budget in its state at `at`. A new period starts with nothing spent, but open calls keep their reservations. */
export const budgetAt = (budget: Budget, at: number): Budget => {
  const { terms } = budget
  const limit = usdLimit(terms, at)
  const start = periodStart(terms.period, at)
  if (start > budget.start)
    return {
      ...budget,
      start,
      spent: 0n,
      tokens: 0,
      requests: 0,
      crossed: 0,
      ceiling: ceilingOf(terms, at, budget.reserved)
    }
  if (limit === undefined || budget.ceiling === undefined || budget.ceiling >= limit) return budget
  return { ...budget, ceiling: limit }
}

const ceilingOf = (terms: BudgetTerms, at: number, used: Nano): Nano | undefined => {
  const limit = usdLimit(terms, at)
  return limit === undefined || terms.mode === "notify" ? undefined : largest(limit, used)
}

/** Creates a budget with all counters at 0. */
export const newBudget = (
  base: Pick<Budget, "anchor" | "id" | "kind" | "tenant_id" | "terms">,
  at: number
): Budget => ({
  ...base,
  start: periodStart(base.terms.period, at),
  spent: 0n,
  reserved: 0n,
  ceiling: ceilingOf(base.terms, at, 0n),
  tokens: 0,
  tokens_reserved: 0,
  requests: 0,
  open: 0,
  crossed: 0
})

/** Returns the budget with new terms, in its state at `at`. Its period type and conditions do not change. */
export const withTerms = (budget: Budget, changed: BudgetTerms, at: number): Budget => {
  const { applies_to, period } = budget.terms
  const terms = { ...changed, applies_to, period }
  const counted = budgetAt(budget, at)
  // The limits or thresholds might have changed, so count the reached thresholds again.
  const { requests, reserved, spent, tokens } = counted
  const crossed = crossedBy(terms, spent, tokens, requests, 0)
  return { ...counted, terms, crossed, ceiling: ceilingOf(terms, at, spent + reserved) }
}

const largest = (one: Nano, other: Nano): Nano => (one < other ? other : one)

/** Returns whether the budget counts a call, ignoring its conditions for the model and provider. */
export const counts = ({ terms: { applies_to } }: Budget, facts: ClaimedFacts): boolean => {
  const { capability, end_user, member, tag } = applies_to
  return (
    (member === undefined || member === facts.account_id) &&
    (capability === undefined || capability === facts.capability) &&
    (end_user === undefined || end_user === facts.end_user) &&
    (tag === undefined || hasTag(facts.tags ?? "", tag))
  )
}

/** Returns whether the budget counts calls served by this model and provider. */
export const countsRoute = ({ terms: { applies_to } }: Budget, { model, provider }: ServingRoute): boolean =>
  (applies_to.model === undefined || applies_to.model === model) &&
  (applies_to.provider === undefined || applies_to.provider === provider)

export const isRouteSpecific = ({ terms: { applies_to } }: Budget): boolean =>
  applies_to.model !== undefined || applies_to.provider !== undefined

/** Returns whether the tags, one `name=value` per line, include the tag. The tag is `name=value` or a name alone. */
const hasTag = (tags: string, tag: string): boolean =>
  `\n${tags}${tag.includes("=") ? "\n" : ""}`.includes(`\n${tag}${tag.includes("=") ? "\n" : "="}`)

export interface Needs {
  readonly usd: Nano
  readonly tokens: number
}

/** Returns the first unit with too little left for a call, or `undefined` if the budget admits the call. */
export const lackingUnit = (budget: Budget, { tokens, usd }: Needs, at: number): BudgetUnit | undefined => {
  const { limit, mode } = budget.terms
  if (mode === "notify") return undefined
  for (const unit of units) {
    if (limit[unit] === undefined) continue
    const left = leftOf(budget, unit, at)
    const isEmpty = budget.kind !== "key" && (unit === "usd" ? usdLimit(budget.terms, at) === 0n : limit[unit] === 0)
    const least = unit === "usd" ? usd : unit === "tokens" ? tokens : 1
    if (isEmpty || left < least) return unit
  }
  return undefined
}

/** Returns the budget's remainder in a unit that it limits (in nano-USD for `usd`), at least 0. */
export const leftOf = (budget: Budget, unit: BudgetUnit, at: number): Nano | number => {
  const { limit } = budget.terms
  switch (unit) {
    case "usd":
      return usdLeft(budget, at)!
    case "tokens":
      return Math.max(0, limit.tokens! - budget.tokens - budget.tokens_reserved)
    case "requests":
      return Math.max(0, limit.requests! - budget.requests)
    case "concurrent":
      return Math.max(0, limit.concurrent! - budget.open)
  }
}

/** Returns the credit left in the budget, at least 0, or `undefined` if the budget has no limit in USD. */
export const usdLeft = (budget: Budget, at: number): Nano | undefined => {
  const limit = usdLimit(budget.terms, at)
  return limit === undefined ? undefined : largest(limit - budget.spent - budget.reserved, 0n)
}

/** Returns the minimum credit left among the budgets that refuse, or `undefined` if none of them limits credit. */
export const minUsdLeft = (budgets: ReadonlyArray<Budget>, at: number): Nano | undefined => {
  let within: Nano | undefined
  for (const budget of budgets) {
    if (budget.terms.mode === "notify") continue
    const left = usdLeft(budget, at)
    if (left !== undefined && (within === undefined || left < within)) within = left
  }
  return within
}

/** Returns the minimum number of tokens left among the budgets that refuse, or `undefined` if none of them limits tokens. */
export const minTokensLeft = (budgets: ReadonlyArray<Budget>, at: number): number | undefined => {
  let within: number | undefined
  for (const budget of budgets) {
    if (budget.terms.mode === "notify" || budget.terms.limit.tokens === undefined) continue
    const left = leftOf(budget, "tokens", at) as number
    if (within === undefined || left < within) within = left
  }
  return within
}

/** Returns the budget after a call's admission. A key's limit counts only credit, because it also covers earlier calls. */
export const admitted = (budget: Budget, usd: Nano, tokens: number): Budget => {
  const { open, requests, reserved, spent, tokens: used, tokens_reserved } = budget
  return budget.kind === "key"
    ? withCounters(budget, spent, reserved + usd, used, tokens_reserved, requests, open)
    : withCounters(budget, spent, reserved + usd, used, tokens_reserved + tokens, requests + 1, open + 1)
}

export interface CallSettlement {
  readonly reserved: Nano
  readonly tokens_reserved: number
  readonly spent: Nano
  readonly tokens: number
  /** Whether the call was still open. False for a released call. */
  readonly wasOpen: boolean
}

export const settled = (budget: Budget, call: CallSettlement): Budget => {
  const { open, requests, tokens, tokens_reserved } = budget
  const spent = budget.spent + call.spent
  const reserved = budget.reserved - call.reserved
  if (budget.kind === "key") return withCounters(budget, spent, reserved, tokens, tokens_reserved, requests, open)
  return withCounters(
    budget,
    spent,
    reserved,
    tokens + call.tokens,
    tokens_reserved - call.tokens_reserved,
    requests,
    call.wasOpen ? open - 1 : open
  )
}

/** Returns the budget with other counters. This runs twice per call and budget, and a literal takes a fifth of the time of a spread. */
const withCounters = (
  budget: Budget,
  spent: Nano,
  reserved: Nano,
  tokens: number,
  tokens_reserved: number,
  requests: number,
  open: number
): Budget => ({
  id: budget.id,
  kind: budget.kind,
  tenant_id: budget.tenant_id,
  anchor: budget.anchor,
  terms: budget.terms,
  start: budget.start,
  spent,
  reserved,
  ceiling: budget.ceiling,
  tokens,
  tokens_reserved,
  requests,
  open,
  crossed: crossedBy(budget.terms, spent, tokens, requests, budget.crossed)
})

/** Counts the thresholds that the counters have reached, at least `crossed`. */
const crossedBy = (
  { limit, notify_at }: BudgetTerms,
  spent: Nano,
  tokens: number,
  requests: number,
  crossed: number
): number => {
  if (crossed >= notify_at.length) return crossed
  const used = Math.max(
    part(Number(spent), limit.usd === undefined ? undefined : Number(limit.usd)),
    part(tokens, limit.tokens),
    part(requests, limit.requests)
  )
  let reached = crossed
  while (reached < notify_at.length && used >= notify_at[reached]!) reached++
  return reached
}

const part = (used: number, limit: number | undefined): number =>
  limit === undefined || limit === 0 ? 0 : used / limit

/** The limit with the smallest remainder in a unit among a call's budgets, for rate limit headers. */
export interface Rate {
  readonly limit: number
  readonly remaining: number
  /** The end of the period, as Unix time in milliseconds; 0 if it never ends. */
  readonly resets_at: number
}

export interface Rates {
  readonly requests?: Rate | undefined
  readonly tokens?: Rate | undefined
}

/** Finds the limits with the smallest remainders. Budgets that only notify or count all tenants are ignored. */
export const ratesOf = (budgets: ReadonlyArray<Budget>, at: number): Rates => ({
  requests: rateOf(budgets, "requests", at),
  tokens: rateOf(budgets, "tokens", at)
})

const rateOf = (budgets: ReadonlyArray<Budget>, unit: "requests" | "tokens", at: number): Rate | undefined => {
  let rate: Rate | undefined
  for (const budget of budgets) {
    const { limit, mode, period } = budget.terms
    // A budget for all tenants would reveal to a tenant how much the others use.
    if (mode === "notify" || limit[unit] === undefined || budget.anchor === everyone) continue
    const remaining = leftOf(budget, unit, at) as number
    if (rate === undefined || remaining < rate.remaining)
      rate = { limit: limit[unit], remaining, resets_at: renewsAt(period, at) ?? 0 }
  }
  return rate
}
