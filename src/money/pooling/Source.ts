/** Schemas for a user's billing sources: their order, the user's choice, their usage and their credit. */
import { Schema } from "effect"
import { BillingAccountId, TenantId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { Role } from "../../people/tenants/Account.ts"

const kind = Schema.Literal("own", "team")

/** `own` is the billing account of the token's tenant, `team` that of another tenant with a team plan. */
export const BillingSource = Schema.Struct({
  billing_account_id: BillingAccountId,
  tenant_id: TenantId,
  tenant_name: Schema.String,
  kind,
  /** The caller's role in that tenant. */
  role: Role,
  is_home: Schema.Boolean,
  available: Schema.Boolean,
  /** Whether the next call charges this source first. */
  selected: Schema.Boolean,
  credits: Schema.Struct({ balance: Usd }),
  /** For team sources only: whether members may spend the team's credit, and whether the tenant set this value or the plan's default applies. */
  member_spend_enabled: Schema.optionalWith(Schema.Boolean, { exact: true }),
  member_spend_source: Schema.optionalWith(Schema.Literal("explicit", "default"), { exact: true })
}).annotations({ identifier: "BillingSource" })
export interface BillingSource extends Schema.Schema.Type<typeof BillingSource> {}

export const Selection = Schema.Union(
  Schema.Struct({ mode: Schema.Literal("automatic") }),
  Schema.Struct({ mode: Schema.Literal("pinned"), billing_account_id: BillingAccountId })
).annotations({ identifier: "BillingSourceSelection" })
export type Selection = typeof Selection.Type

export const BillingSources = Schema.Struct({
  /** Sources in payer order. */
  sources: Schema.Array(BillingSource),
  /** The user's choice. Null before the first choice, with the effect of `automatic`. */
  selection: Schema.NullOr(Selection),
  /** Whether the user must choose: their own source cannot pay, several teams can, and no source is pinned. */
  selection_required: Schema.Boolean
}).annotations({ identifier: "BillingSources" })
export interface BillingSources extends Schema.Schema.Type<typeof BillingSources> {}

const totals = { total_requests: Schema.Int, total_tokens: Schema.Int, total_cost: Usd }

export const PayerUsage = Schema.Struct({
  window: Schema.Struct({ start: Schema.NullOr(Moment), end: Schema.NullOr(Moment) }),
  totals: Schema.Struct(totals),
  /** Sources by descending cost. */
  sources: Schema.Array(Schema.Struct({ billing_account_id: BillingAccountId, tenant_id: TenantId, kind, ...totals }))
}).annotations({ identifier: "PayerUsage" })
export interface PayerUsage extends Schema.Schema.Type<typeof PayerUsage> {}

const dateText = (description: string) =>
  Schema.optionalWith(Schema.String.annotations({ description }), { exact: true })

export const PayerUsageQuery = Schema.Struct({
  start_date: dateText("RFC 3339; rounded down to a whole UTC day"),
  end_date: dateText("RFC 3339; rounded up to a whole UTC day")
})
export interface PayerUsageQuery extends Schema.Schema.Type<typeof PayerUsageQuery> {}

export const Capacity = Schema.Struct({
  total_balance: Usd,
  total_held: Usd,
  sources: Schema.Array(
    Schema.Struct({
      billing_account_id: BillingAccountId,
      tenant_id: TenantId,
      kind,
      balance: Usd,
      /** Credit held in escrow for pending transfers. It is not part of the balance. */
      held_credits: Usd
    })
  )
}).annotations({ identifier: "Capacity" })
export interface Capacity extends Schema.Schema.Type<typeof Capacity> {}
