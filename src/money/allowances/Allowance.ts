/** Allowances: credit that a tenant receives each week or month. The terms are the tenant's own or those of a plan. */
import { Schema } from "effect"
import { Amount } from "../../kernel/Amount.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { amountMax, Usd } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { Period } from "../../kernel/Period.ts"

/** The amount of unused credit that carries over to the next period. */
export const Rollover = Schema.Union(Schema.Literal("none", "all"), Schema.Struct({ up_to_usd: Amount })).annotations({
  identifier: "AllowanceRollover"
})
export type Rollover = typeof Rollover.Type

const rollover = Schema.optionalWith(Rollover, { default: () => "none" as const })

export const Terms = Schema.Struct({ amount_usd: Amount, period: Period, rollover })
export interface Terms extends Schema.Schema.Type<typeof Terms> {}

/** Returns the maximum credit that a rollover carries over, in nano-USD. */
export const keepOf = (rollover: Rollover): Nano =>
  rollover === "none" ? 0n : rollover === "all" ? amountMax : rollover.up_to_usd

/** Either a configured plan's name or the tenant's own terms. */
export const NewAllowance = Schema.Struct({
  plan: Schema.optional(Schema.String),
  amount_usd: Schema.optional(Amount),
  period: Schema.optional(Period),
  rollover: Schema.optional(Rollover)
}).pipe(
  Schema.filter(
    ({ amount_usd, period, plan, rollover }) =>
      plan === undefined
        ? amount_usd !== undefined && period !== undefined
        : amount_usd === undefined && period === undefined && rollover === undefined,
    { message: () => "must contain either plan, or amount_usd and period" }
  ),
  Schema.annotations({ identifier: "NewAllowance" })
)
export interface NewAllowance extends Schema.Schema.Type<typeof NewAllowance> {}

export const Allowance = Schema.Struct({
  tenant_id: TenantId,
  /** The plan that defines the terms. Null if the tenant has its own terms. */
  plan: Schema.NullOr(Schema.String),
  amount_usd: Usd,
  period: Period,
  rollover: Schema.Union(Schema.Literal("none", "all"), Schema.Struct({ up_to_usd: Usd })),
  /** The last grant, including the credit that carried over. Null before the first grant. */
  granted_usd: Schema.NullOr(Usd),
  granted_at: Schema.NullOr(Moment),
  /** The unspent part of the last grant that could be taken back now. It excludes reservations of open calls. */
  unused_usd: Usd,
  renews_at: Moment
}).annotations({ identifier: "Allowance" })
export interface Allowance extends Schema.Schema.Type<typeof Allowance> {}

/** A configured plan, as shown to the operator. */
export const PlanLine = Schema.Struct({
  name: Schema.String,
  /** Null for a plan without an allowance. */
  allowance: Schema.NullOr(Schema.Struct({ amount_usd: Usd, period: Period, rollover: Allowance.fields.rollover })),
  /** The factor on model prices. Null if the plan pays list prices. */
  price_factor: Schema.NullOr(Schema.String)
}).annotations({ identifier: "PlanLine" })
export interface PlanLine extends Schema.Schema.Type<typeof PlanLine> {}

export const OwnAllowance = Schema.Struct({ allowance: Schema.NullOr(Allowance) }).annotations({
  identifier: "OwnAllowance"
})
export interface OwnAllowance extends Schema.Schema.Type<typeof OwnAllowance> {}

export const AllowanceEnded = Schema.Struct({
  tenant_id: TenantId,
  /** The unused credit that was taken back. */
  taken_usd: Usd
}).annotations({ identifier: "AllowanceEnded" })
export interface AllowanceEnded extends Schema.Schema.Type<typeof AllowanceEnded> {}
