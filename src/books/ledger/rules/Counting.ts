/** Finds the budgets that count a call, checks whether they admit the call, and books the call into them. */
import { Either } from "effect"
import type { Nano } from "../../../kernel/Money.ts"
import {
  admitted,
  counts,
  countsRoute,
  everyone,
  isRouteSpecific,
  lackingUnit,
  leftOf,
  ratesOf,
  renewsAt,
  settled,
  budgetAt,
  minTokensLeft,
  usdLimit
} from "./Budget.ts"
import type { Budget, BudgetUnit, Needs } from "./Budget.ts"
import type {
  CallOutcome,
  ClaimedFacts,
  Dimensions,
  Refusal,
  Reservation,
  Shortage,
  ServingRoute,
  BudgetAllowance
} from "./Transaction.ts"

export interface BudgetStore {
  readonly budget: (id: string) => Budget | undefined
  /** Returns the ids of an anchor's budgets, of every kind. */
  readonly budgetsAt: (anchor: string) => ReadonlyArray<string>
  readonly setBudget: (id: string, budget: Budget) => void
}

export interface Counted {
  readonly budgets: ReadonlyArray<Budget>
  readonly barred: ReadonlyArray<number>
  /** The refusal by the first budget that excludes one of the `ways`. */
  readonly refusal?: Shortage | undefined
}

const none: ReadonlyArray<never> = []
const uncounted: Either.Either<Counted, Refusal> = Either.right({ budgets: none, barred: none })

/** Returns the budgets of the call's key, runs, tenant and payer, and those of `everyone`, if they count the call. */
const budgetsOf = (
  atHand: BudgetStore,
  facts: ClaimedFacts,
  payer: string | undefined,
  at: number
): ReadonlyArray<Budget> => {
  const { application_id, runs, tenant_id } = facts
  let found: ReadonlyArray<Budget> = none
  // The key's limit comes first, so that its refusal takes precedence.
  if (application_id !== null) found = appendBudgetsAt(atHand, application_id, facts, at, found)
  if (runs !== undefined) for (const run of runs) found = appendBudgetsAt(atHand, run, facts, at, found)
  found = appendBudgetsAt(atHand, tenant_id, facts, at, found)
  if (payer !== undefined && payer !== tenant_id) found = appendBudgetsAt(atHand, payer, facts, at, found)
  return appendBudgetsAt(atHand, everyone, facts, at, found)
}

/** Appends an anchor's budgets that count the call to those found so far. If the anchor has none, nothing is allocated. */
const appendBudgetsAt = (
  atHand: BudgetStore,
  anchor: string,
  facts: ClaimedFacts,
  at: number,
  found: ReadonlyArray<Budget>
): ReadonlyArray<Budget> => {
  const ids = atHand.budgetsAt(anchor)
  if (ids.length === 0) return found
  const all = [...found]
  for (const id of ids) {
    const budget = atHand.budget(id)
    if (budget !== undefined && counts(budget, facts)) all.push(budgetAt(budget, at))
  }
  return all
}

/** Returns the budgets that count a call, or the refusal of the first with too little left. `payer` is the paying tenant, if known. */
export const admit = (
  atHand: BudgetStore,
  facts: ClaimedFacts,
  payer: string | undefined,
  needs: Needs,
  at: number
): Either.Either<Counted, Refusal> => {
  const found = budgetsOf(atHand, facts, payer, at)
  if (found.length === 0) return uncounted
  const budgets: Array<Budget> = []
  const ofWays: Array<Budget> = []
  for (const budget of found) {
    if (isRouteSpecific(budget)) {
      ofWays.push(budget)
      continue
    }
    const unit = lackingUnit(budget, needs, at)
    if (unit !== undefined) return Either.left(refusalOf(budget, unit, at))
    budgets.push(budget)
  }
  return ofWays.length === 0 ? Either.right({ budgets, barred: none }) : admitRoutes(budgets, ofWays, facts, needs, at)
}

/** Excludes a model and provider if one of their budgets has too little left. Refuses the call if none remains. */
const admitRoutes = (
  budgets: ReadonlyArray<Budget>,
  ofWays: ReadonlyArray<Budget>,
  facts: ClaimedFacts,
  needs: Needs,
  at: number
): Either.Either<Counted, Refusal> => {
  const ways: ReadonlyArray<ServingRoute> = facts.ways ?? [facts]
  const barred: Array<number> = []
  const counted = new Set<Budget>()
  let first: Shortage | undefined
  for (const [place, way] of ways.entries()) {
    const counting = ofWays.filter((budget) => countsRoute(budget, way))
    const empty = counting.find((budget) => lackingUnit(budget, needs, at) !== undefined)
    if (empty === undefined) {
      for (const budget of counting) counted.add(budget)
      continue
    }
    barred.push(place)
    first ??= shortageOf(empty, lackingUnit(empty, needs, at)!, at)
  }
  if (barred.length === ways.length) return Either.left(first!)
  return Either.right({ budgets: [...budgets, ...counted], barred, refusal: first })
}

const refusalOf = (budget: Budget, unit: BudgetUnit, at: number): Refusal =>
  budget.kind === "key"
    ? { _tag: "LimitReached", application: budget.id, available: BigInt(leftOf(budget, unit, at)) }
    : shortageOf(budget, unit, at)

const shortageOf = (budget: Budget, unit: BudgetUnit, at: number): Shortage => {
  const { limit, name, period } = budget.terms
  return {
    _tag: "BudgetReached",
    budget: budget.id,
    name,
    unit,
    period,
    limit: unit === "usd" ? usdLimit(budget.terms, at)! : BigInt(limit[unit]!),
    left: BigInt(leftOf(budget, unit, at)),
    renews_at: renewsAt(period, at),
    ...(budget.anchor === everyone && { of_everyone: true as const })
  }
}

/** Books an admitted call into its budgets. `usd` is the reserved amount in nano-USD. */
export const book = (
  atHand: BudgetStore,
  { barred, budgets, refusal }: Counted,
  usd: Nano,
  tokens: { readonly least: number; readonly most: number } | undefined,
  at: number
): {
  readonly within: BudgetAllowance | undefined
  readonly ids: ReadonlyArray<string> | undefined
  readonly tokens: number
} => {
  if (budgets.length === 0)
    return barred.length === 0 ? unbooked : { ...unbooked, within: { ...unlimited, barred, refusal } }
  const left = minTokensLeft(budgets, at)
  const most = tokens?.most ?? 0
  const reserved = left === undefined || most < left ? most : left
  const booked = budgets.map((budget) => admitted(budget, usd, reserved))
  for (const budget of booked) atHand.setBudget(budget.id, budget)
  return {
    within: { tokens: left === undefined ? undefined : reserved, rates: ratesOf(booked, at), barred, refusal },
    ids: idsOf(budgets),
    tokens: reserved
  }
}

const unlimited = { tokens: undefined, rates: {} } as const
const unbooked = { within: undefined, ids: undefined, tokens: 0 } as const

/** The last array of ids, by its first id. Equal arrays usually share one object, because `Rows` caches their JSON by identity. */
const lists = new Map<string, ReadonlyArray<string>>()
const listsMax = 10_000

const idsOf = (budgets: ReadonlyArray<Budget>): ReadonlyArray<string> => {
  const first = budgets[0]!.id
  const known = lists.get(first)
  if (known !== undefined && isListOf(known, budgets)) return known
  if (lists.size >= listsMax) lists.clear()
  const ids = budgets.map(({ id }) => id)
  lists.set(first, ids)
  return ids
}

const isListOf = (ids: ReadonlyArray<string>, budgets: ReadonlyArray<Budget>): boolean => {
  if (ids.length !== budgets.length) return false
  for (let i = 0; i < ids.length; i++) if (ids[i] !== budgets[i]!.id) return false
  return true
}

/** Returns the budgets that hold a call's reservation, in their state at `at`, and the key's limit even if it was set after the admission. */
export const countedOf = (atHand: BudgetStore, reservation: Reservation, at: number): ReadonlyArray<Budget> => {
  const { budgets = none, dimensions } = reservation
  const { application_id } = dimensions
  let found: Array<Budget> | undefined
  for (const id of budgets) {
    const budget = atHand.budget(id)
    if (budget !== undefined) (found ??= []).push(budgetAt(budget, at))
  }
  if (application_id === null || budgets.includes(application_id)) return found ?? none
  const ofKey = atHand.budget(application_id)
  if (ofKey !== undefined) (found ??= []).push(budgetAt(ofKey, at))
  return found ?? none
}

/**
 * Returns whether a budget with a reservation for a call also counts the charge. A budget for a model or provider that did not serve the call does
 * not count it.
 */
export const countsServed = (budget: Budget, served: Dimensions): boolean =>
  !isRouteSpecific(budget) || countsRoute(budget, served)

/** Returns the budgets that count a call's charge. */
export const chargedBudgets = (budgets: ReadonlyArray<Budget>, served: Dimensions): ReadonlyArray<Budget> =>
  budgets.every((budget) => countsServed(budget, served))
    ? budgets
    : budgets.filter((budget) => countsServed(budget, served))

/** Returns the budget ids for a usage record: those with a reservation for the call, except budgets for other models and providers. */
export const recordedIds = (
  ids: ReadonlyArray<string> | undefined,
  budgets: ReadonlyArray<Budget>,
  served: Dimensions
): ReadonlyArray<string> | undefined => {
  if (ids === undefined || budgets.every((budget) => countsServed(budget, served))) return ids
  const isServed = (id: string) => budgets.every((budget) => budget.id !== id || countsServed(budget, served))
  return ids.filter(isServed)
}

/** Replaces a settled call's reservation in its budgets with the charge and the tokens used. */
export const bookSettlement = (
  atHand: BudgetStore,
  budgets: ReadonlyArray<Budget>,
  { amount, released, tokens = 0 }: Reservation,
  served: Dimensions,
  outcome: CallOutcome,
  collected: Nano
): void => {
  for (const budget of budgets) {
    const isServed = countsServed(budget, served)
    atHand.setBudget(
      budget.id,
      settled(budget, {
        reserved: amount,
        tokens_reserved: tokens,
        spent: isServed ? collected : 0n,
        tokens: isServed ? outcome.prompt_tokens + outcome.completion_tokens : 0,
        wasOpen: released !== true
      })
    )
  }
}
