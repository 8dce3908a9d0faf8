/** What a person sees of who pays for their calls: the sources, what they chose, what each paid, what each has. */
import { Schema } from "effect"
import { BillingAccountId, TenantId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { Role } from "../../people/tenants/Account.ts"

const kind = Schema.Literal("own", "team")

/** `own` is the billing account of the token's tenant, `team` that of another one on a team plan. */
export const BillingSource = Schema.Struct({
  billing_account_id: BillingAccountId,
  tenant_id: TenantId,
  tenant_name: Schema.String,
  kind,
  /** The caller's, in that tenant. */
  role: Role,
  is_home: Schema.Boolean,
  /** Whether it could pay now. */
  available: Schema.Boolean,
  /** Whether it is the first that the next call would be charged to. */
  selected: Schema.Boolean,
  credits: Schema.Struct({ balance: Usd }),
  /** On team sources: whether members may draw on it, and whether that was set or follows from the plan. */
  member_spend_enabled: Schema.optionalWith(Schema.Boolean, { exact: true }),
  member_spend_source: Schema.optionalWith(Schema.Literal("explicit", "default"), { exact: true })
}).annotations({ identifier: "BillingSource" })
export interface BillingSource extends Schema.Schema.Type<typeof BillingSource> {}

/** What the person chose. */
export const Selection = Schema.Union(
  Schema.Struct({ mode: Schema.Literal("automatic") }),
  Schema.Struct({ mode: Schema.Literal("pinned"), billing_account_id: BillingAccountId })
).annotations({ identifier: "BillingSourceSelection" })
export type Selection = typeof Selection.Type

export const BillingSources = Schema.Struct({
  /** In the order of charging. */
  sources: Schema.Array(BillingSource),
  /** Null as long as nothing was chosen, which is the same as automatic. */
  selection: Schema.NullOr(Selection),
  /** The own source cannot pay, several teams could, and nothing is pinned. */
  selection_required: Schema.Boolean
}).annotations({ identifier: "BillingSources" })
export interface BillingSources extends Schema.Schema.Type<typeof BillingSources> {}

const totals = { total_requests: Schema.Int, total_tokens: Schema.Int, total_cost: Usd }

/** What each source paid for the person's calls. */
export const PayerUsage = Schema.Struct({
  window: Schema.Struct({ start: Schema.NullOr(Moment), end: Schema.NullOr(Moment) }),
  totals: Schema.Struct(totals),
  /** The dearest first. */
  sources: Schema.Array(Schema.Struct({ billing_account_id: BillingAccountId, tenant_id: TenantId, kind, ...totals }))
}).annotations({ identifier: "PayerUsage" })
export interface PayerUsage extends Schema.Schema.Type<typeof PayerUsage> {}

const dateText = (description: string) =>
  Schema.optionalWith(Schema.String.annotations({ description }), { exact: true })

export const PayerUsageQuery = Schema.Struct({
  start_date: dateText("RFC 3339; the whole UTC day that it falls into is counted"),
  end_date: dateText("RFC 3339; whole UTC days before it are counted, the one that it falls into too")
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
      /** In escrow of transfers that are pending; no part of the balance. */
      held_credits: Usd
    })
  )
}).annotations({ identifier: "Capacity" })
export interface Capacity extends Schema.Schema.Type<typeof Capacity> {}
