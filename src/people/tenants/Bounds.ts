/**
 * Limits that an owner or admin set on another user's key. That user may only tighten them.
 *
 * Where the specification is silent:
 * - A limit applies to its key, not to the member. The member can create another key without the limit, so only a budget limits the member.
 */
import type { Limit } from "../../books/ledger/rules/Transaction.ts"

type Spending = Pick<Limit, "amount" | "period">

export interface Bounds {
  readonly spending?: { readonly amount: string; readonly period: Spending["period"] }
  readonly expires_at?: number
  readonly allowed_models?: ReadonlyArray<string>
  /** Lines of the form `name=value`. */
  readonly tags?: string
}

/** A requested change. `null` removes a limit; `undefined` leaves it unchanged. */
export interface BoundsChange {
  readonly spending: Spending | null | undefined
  readonly expires_at: number | null | undefined
  readonly allowed_models: ReadonlyArray<string> | null | undefined
  readonly tags: string | null | undefined
}

export const ofRow = (json: string | null): Bounds => (json === null ? {} : (JSON.parse(json) as Bounds))

export const toRow = (bounds: Bounds): string | null =>
  Object.keys(bounds).length === 0 ? null : JSON.stringify(bounds)

/** Returns whether a spending limit is within the bound. A total limit also limits each month, but a monthly limit does not limit the total. */
const isWithin = (bound: NonNullable<Bounds["spending"]>, { amount, period }: Spending): boolean =>
  amount <= BigInt(bound.amount) && (period === bound.period || period === "total")

const hasLines = (text: string | null, lines: string): boolean => {
  const has = new Set(text?.split("\n"))
  return lines.split("\n").every((line) => has.has(line))
}

/** Returns whether the change keeps or tightens every limit. */
export const permits = (bounds: Bounds, { allowed_models, expires_at, spending, tags }: BoundsChange): boolean => {
  if (bounds.tags !== undefined && tags !== undefined && !hasLines(tags, bounds.tags)) return false
  if (bounds.spending !== undefined && spending !== undefined)
    if (spending === null || !isWithin(bounds.spending, spending)) return false
  if (bounds.expires_at !== undefined && expires_at !== undefined)
    if (expires_at === null || expires_at > bounds.expires_at) return false
  const { allowed_models: models } = bounds
  if (models === undefined || allowed_models === undefined) return true
  return allowed_models !== null && allowed_models.every((model) => models.includes(model))
}

/** Returns the bounds after an owner or admin changes their own key. A limit in the change is no longer a bound. */
export const without = (bounds: Bounds, asked: BoundsChange): Bounds => ({
  ...(bounds.spending !== undefined && asked.spending === undefined && { spending: bounds.spending }),
  ...(bounds.expires_at !== undefined && asked.expires_at === undefined && { expires_at: bounds.expires_at }),
  ...(bounds.allowed_models !== undefined &&
    asked.allowed_models === undefined && { allowed_models: bounds.allowed_models }),
  ...(bounds.tags !== undefined && asked.tags === undefined && { tags: bounds.tags })
})

/** Returns the bounds after an owner, an admin or the operator changes another user's key. */
export const including = (bounds: Bounds, asked: BoundsChange): Bounds => {
  const { allowed_models, expires_at, spending, tags } = asked
  return {
    ...without(bounds, asked),
    ...(spending != null && { spending: { amount: String(spending.amount), period: spending.period } }),
    ...(expires_at != null && { expires_at }),
    ...(allowed_models != null && { allowed_models }),
    ...(tags != null && { tags })
  }
}
