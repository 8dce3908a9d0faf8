/** Which budgets count a call, whether they admit it, and how they book it. */
import { Either } from "effect"
import type { Nano } from "../../../kernel/Money.ts"
import {
  admitted,
  counts,
  countsWay,
  everyone,
  isOfWays,
  lacking,
  leftOf,
  ratesOf,
  renewsAt,
  settled,
  standingAt,
  tokensWithin,
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
  Way,
  Within
} from "./Transaction.ts"

/** The budgets that a transaction may touch. */
export interface BudgetsAtHand {
  readonly budget: (id: string) => Budget | undefined
  /** Ids, of all kinds. */
  readonly budgetsAt: (anchor: string) => ReadonlyArray<string>
  readonly setBudget: (id: string, budget: Budget) => void
}

/** The budgets that count an admitted call. */
export interface Counted {
  readonly budgets: ReadonlyArray<Budget>
  /** The places in the call's ways that budgets have taken away. */
  readonly barred: ReadonlyArray<number>
  /** The refusal of the first budget that takes away a way. */
  readonly refusal?: Shortage | undefined
}

const none: ReadonlyArray<never> = []
const uncounted: Either.Either<Counted, Refusal> = Either.right({ budgets: none, barred: none })

/** The budgets of the operator, of these tenants, and of the key and the runs of the call, in their state at an instant. */
const budgetsOf = (
  atHand: BudgetsAtHand,
  facts: ClaimedFacts,
  payer: string | undefined,
  at: number
): ReadonlyArray<Budget> => {
  const { application_id, runs, tenant_id } = facts
  let found: ReadonlyArray<Budget> = none
  // The limit of the key comes first, since it has a refusal of its own.
  if (application_id !== null) found = withThoseAt(atHand, application_id, facts, at, found)
  if (runs !== undefined) for (const run of runs) found = withThoseAt(atHand, run, facts, at, found)
  found = withThoseAt(atHand, tenant_id, facts, at, found)
  if (payer !== undefined && payer !== tenant_id) found = withThoseAt(atHand, payer, facts, at, found)
  return withThoseAt(atHand, everyone, facts, at, found)
}

/** The budgets found so far and those at an anchor. Without any, nothing is allocated. */
const withThoseAt = (
  atHand: BudgetsAtHand,
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
    if (budget !== undefined && counts(budget, facts)) all.push(standingAt(budget, at))
  }
  return all
}

/** Whether the budgets admit a call, and those that then count it. `payer`: the tenant that pays, if it is known. */
export const admit = (
  atHand: BudgetsAtHand,
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
    if (isOfWays(budget)) {
      ofWays.push(budget)
      continue
    }
    const unit = lacking(budget, needs, at)
    if (unit !== undefined) return Either.left(refusalOf(budget, unit, at))
    budgets.push(budget)
  }
  return ofWays.length === 0 ? Either.right({ budgets, barred: none }) : admitWays(budgets, ofWays, facts, needs, at)
}

/** A way is barred by a budget that counts it and has too little left. */
const admitWays = (
  budgets: ReadonlyArray<Budget>,
  ofWays: ReadonlyArray<Budget>,
  facts: ClaimedFacts,
  needs: Needs,
  at: number
): Either.Either<Counted, Refusal> => {
  const ways: ReadonlyArray<Way> = facts.ways ?? [facts]
  const barred: Array<number> = []
  const counted = new Set<Budget>()
  let first: Shortage | undefined
  for (const [place, way] of ways.entries()) {
    const counting = ofWays.filter((budget) => countsWay(budget, way))
    const empty = counting.find((budget) => lacking(budget, needs, at) !== undefined)
    if (empty === undefined) {
      for (const budget of counting) counted.add(budget)
      continue
    }
    barred.push(place)
    first ??= shortageOf(empty, lacking(empty, needs, at)!, at)
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

/** Books an admitted call into its budgets. */
export const book = (
  atHand: BudgetsAtHand,
  { barred, budgets, refusal }: Counted,
  usd: Nano,
  tokens: { readonly least: number; readonly most: number } | undefined,
  at: number
): {
  readonly within: Within | undefined
  readonly ids: ReadonlyArray<string> | undefined
  readonly tokens: number
} => {
  if (budgets.length === 0)
    return barred.length === 0 ? unbooked : { ...unbooked, within: { ...unlimited, barred, refusal } }
  const left = tokensWithin(budgets, at)
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

/** By first id, the newest list. The same budgets mostly get the same list, which crosses to another thread once. */
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

/** The budgets that count an open call, in their state at an instant. A limit that its key received later counts it too. */
export const countedOf = (atHand: BudgetsAtHand, reservation: Reservation, at: number): ReadonlyArray<Budget> => {
  const { budgets = none, dimensions } = reservation
  const { application_id } = dimensions
  let found: Array<Budget> | undefined
  for (const id of budgets) {
    const budget = atHand.budget(id)
    if (budget !== undefined) (found ??= []).push(standingAt(budget, at))
  }
  if (application_id === null || budgets.includes(application_id)) return found ?? none
  const ofKey = atHand.budget(application_id)
  if (ofKey !== undefined) (found ??= []).push(standingAt(ofKey, at))
  return found ?? none
}

/** Whether a budget that has reserved credit for a call counts what the call came to: not if it is of another model or provider. */
export const countsServed = (budget: Budget, served: Dimensions): boolean =>
  !isOfWays(budget) || countsWay(budget, served)

/** The budgets that count what a call came to. */
export const servedIn = (budgets: ReadonlyArray<Budget>, served: Dimensions): ReadonlyArray<Budget> =>
  budgets.every((budget) => countsServed(budget, served))
    ? budgets
    : budgets.filter((budget) => countsServed(budget, served))

/** The budgets that a record names: those that reserved for the call, without those of models and providers that did not serve it. */
export const namedIn = (
  ids: ReadonlyArray<string> | undefined,
  budgets: ReadonlyArray<Budget>,
  served: Dimensions
): ReadonlyArray<string> | undefined => {
  if (ids === undefined || budgets.every((budget) => countsServed(budget, served))) return ids
  const isServed = (id: string) => budgets.every((budget) => budget.id !== id || countsServed(budget, served))
  return ids.filter(isServed)
}

/** Corrects the budgets of a settled call: what it had reserved is free again, and what it came to is spent. */
export const correct = (
  atHand: BudgetsAtHand,
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
