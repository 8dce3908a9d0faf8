/** Schemas for the operator's search results and details: tenants, people, keys, calls, transfers and payments. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { Member, Membership, PlanName, PlanStatus } from "../../people/tenants/Account.ts"
import { TransferStatus } from "../../money/transfers/States.ts"
import { UsageRecord } from "../../money/usage/Usage.ts"

export const TenantStatus = Schema.Literal("active", "suspended", "closed")
export const PersonStatus = Schema.Literal("active", "suspended")

export const TenantLine = Schema.Struct({
  id: TenantId,
  name: Schema.String,
  /** The first owner's address; null if there is no owner. */
  owner_email: Schema.NullOr(Schema.String),
  created_at: Moment,
  balance: Usd,
  status: TenantStatus
}).annotations({ identifier: "OperatorTenantLine" })
export interface TenantLine extends Schema.Schema.Type<typeof TenantLine> {}

const person = {
  id: AccountId,
  name: Schema.String,
  email: Schema.String,
  email_verified: Schema.Boolean,
  home_tenant_id: TenantId,
  status: PersonStatus,
  created_at: Moment
} as const

export const PersonLine = Schema.Struct(person).annotations({ identifier: "OperatorPersonLine" })
export interface PersonLine extends Schema.Schema.Type<typeof PersonLine> {}

const key = {
  id: ApplicationId,
  name: Schema.String,
  key_prefix: Schema.String,
  tenant_id: TenantId,
  account_id: AccountId,
  created_at: Moment,
  last_used_at: Schema.NullOr(Moment),
  expires_at: Schema.NullOr(Moment)
} as const

export const KeyLine = Schema.Struct(key).annotations({ identifier: "OperatorKeyLine" })
export interface KeyLine extends Schema.Schema.Type<typeof KeyLine> {}

/** An open call. `reserved_usd` is its maximum cost. */
export const OpenCallLine = Schema.Struct({
  id: Schema.String,
  state: Schema.Literal("open"),
  timestamp: Moment,
  tenant_id: Schema.String,
  account_id: Schema.String,
  model: Schema.String,
  provider: Schema.String,
  reserved_usd: Usd
}).annotations({ identifier: "OperatorOpenCall" })

export const EndedCallLine = Schema.Struct({
  ...UsageRecord.fields,
  state: Schema.Literal("ended"),
  /** The vendor's id for the request that served the call, or for the last failed request. Absent if the vendor returned no id. */
  vendor_request: Schema.optionalWith(Schema.String, { exact: true }),
  /** The vendors' ids for the earlier failed attempts. Absent if there were none. */
  vendor_retries: Schema.optionalWith(Schema.Array(Schema.String), { exact: true }),
  /** The cost that the vendor reported. Absent if the vendor reported none. */
  vendor_cost: Schema.optionalWith(Usd, { exact: true })
}).annotations({ identifier: "OperatorEndedCall" })

export const CallLine = Schema.Union(OpenCallLine, EndedCallLine)
export type CallLine = typeof CallLine.Type

export const TransferLine = Schema.Struct({
  id: Schema.String,
  status: TransferStatus,
  amount: Usd,
  sender_tenant_id: TenantId,
  recipient_email: Schema.String,
  created_at: Moment
}).annotations({ identifier: "OperatorTransferLine" })
export interface TransferLine extends Schema.Schema.Type<typeof TransferLine> {}

export const PaymentLine = Schema.Struct({
  /** The processor's id, or the reference of a grant or an offline payment. */
  id: Schema.String,
  tenant_id: TenantId,
  amount: Usd,
  at: Moment,
  source: Schema.Literal("checkout", "auto_reload", "offline", "grant")
}).annotations({ identifier: "OperatorPaymentLine" })
export interface PaymentLine extends Schema.Schema.Type<typeof PaymentLine> {}

export const Found = Schema.Struct({
  tenants: Schema.Array(TenantLine),
  people: Schema.Array(PersonLine),
  keys: Schema.Array(KeyLine),
  calls: Schema.Array(CallLine),
  transfers: Schema.Array(TransferLine),
  payments: Schema.Array(PaymentLine),
  /** Names of the tenants that keys, calls, transfers and payments refer to, by id. */
  tenant_names: Schema.Record({ key: Schema.String, value: Schema.String })
}).annotations({ identifier: "OperatorFound" })
export interface Found extends Schema.Schema.Type<typeof Found> {}

/** A tenant's credit. `available` is the credit that calls can still reserve. */
const TenantMoney = Schema.Struct({
  balance: Usd,
  giftable: Usd,
  granted: Usd,
  held: Usd,
  reserved: Usd,
  available: Usd
})

const TenantKey = Schema.Struct({ ...key, spending_limit_usd: Schema.optional(Usd), spent_usd: Schema.optional(Usd) })

export const TenantDetail = Schema.Struct({
  id: TenantId,
  name: Schema.String,
  created_at: Moment,
  status: TenantStatus,
  plan: Schema.Struct({ plan: PlanName, status: PlanStatus, seats: Schema.Int }),
  money: TenantMoney,
  has_been_funded: Schema.Boolean,
  /** Open calls that this tenant pays for. */
  open_calls: Schema.Int,
  members: Schema.Array(Member),
  /** The newest 200 keys. */
  keys: Schema.Array(TenantKey),
  total_keys: Schema.Int
}).annotations({ identifier: "OperatorTenant" })
export interface TenantDetail extends Schema.Schema.Type<typeof TenantDetail> {}

export const PersonDetail = Schema.Struct({
  ...person,
  suspended_at: Schema.NullOr(Moment),
  identities: Schema.Array(
    Schema.Struct({ provider: Schema.String, provider_id: Schema.String, email: Schema.String })
  ),
  memberships: Schema.Array(Membership),
  keys: Schema.Array(KeyLine),
  /** The newest 100 open sign-ins. `application`: whether an OAuth application holds the sign-in. */
  sign_ins: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      client_id: Schema.String,
      application: Schema.Boolean,
      signed_in_at: Moment
    })
  )
}).annotations({ identifier: "OperatorPerson" })
export interface PersonDetail extends Schema.Schema.Type<typeof PersonDetail> {}
