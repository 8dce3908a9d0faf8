/** A tenant's balance, ledger and billing account, as shown to clients. */
import { Schema } from "effect"
import { Email } from "../../kernel/Email.ts"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { PageQuery, Paginated } from "../../kernel/Page.ts"

export interface Credits extends Schema.Schema.Type<typeof Credits> {}
export const Credits = Schema.Struct({ balance: Usd }).annotations({ identifier: "Credits" })

export const entrySources = [
  "purchase",
  "registration_bonus",
  "signup_grant",
  "admin",
  "allowance",
  "voucher",
  "transfer_escrow",
  "transfer_release",
  "transfer_return"
] as const

export interface LedgerEntry extends Schema.Schema.Type<typeof LedgerEntry> {}
export const LedgerEntry = Schema.Struct({
  id: Schema.String,
  billing_account_id: Schema.String,
  type: Schema.Literal("credit", "debit"),
  /** The amount, always positive. `type` determines the direction. */
  amount: Usd,
  /** The balance after this entry. */
  balance: Usd,
  description: Schema.String,
  reference_id: Schema.String,
  created_at: Moment,
  /** Absent for a charge. */
  source: Schema.optionalWith(Schema.Literal(...entrySources), { exact: true })
}).annotations({ identifier: "LedgerEntry" })

export interface LedgerQuery extends Schema.Schema.Type<typeof LedgerQuery> {}
export const LedgerQuery = Schema.Struct({
  ...PageQuery,
  source: Schema.optionalWith(
    Schema.String.annotations({
      description: "Restricts the entries to these sources, separated by commas. `call` selects charges"
    }),
    { exact: true }
  )
})

export interface LedgerPage extends Schema.Schema.Type<typeof LedgerPage> {}
export const LedgerPage = Paginated(LedgerEntry).annotations({ identifier: "LedgerPage" })

/** A balance by kind of credit, with the held, reserved and available amounts. */
export interface Amounts extends Schema.Schema.Type<typeof Amounts> {}
export const Amounts = Schema.Struct({
  balance: Usd,
  /** The two parts of the balance. Only giftable credit can be sent. */
  giftable: Usd,
  granted: Usd,
  /** Credit held in escrow for pending transfers. It is not part of the balance. */
  held: Usd,
  /** The part of the balance that open calls have reserved. */
  reserved: Usd,
  /** The part of the balance that further calls can use. */
  available: Usd
}).annotations({ identifier: "Amounts" })

/** The settings of a billing account, including defaults. */
export interface Settings {
  readonly billing_emails: ReadonlyArray<string>
  readonly member_spend_enabled: boolean
  /** Always equal to `member_spend_enabled`. */
  readonly member_spend_effective: boolean
  /** Whether the tenant set the value (`explicit`) or the plan's default applies. */
  readonly member_spend_source: "explicit" | "default"
}

export interface BillingAccount extends Schema.Schema.Type<typeof BillingAccount> {}
export const BillingAccount = Schema.Struct({
  status: Schema.Literal("active", "suspended", "closed"),
  credits: Usd,
  /** The part of `credits` that can be sent. */
  giftable_credits: Usd,
  /** Credit held in escrow for pending transfers. It is not part of `credits`. */
  held_credits: Usd,
  has_been_funded: Schema.Boolean,
  member_spend_effective: Schema.Boolean,
  member_spend_source: Schema.Literal("explicit", "default"),
  billing_emails: Schema.Array(Schema.String),
  member_spend_enabled: Schema.Boolean
}).annotations({ identifier: "BillingAccount" })

/** A change by an owner or admin. An absent field leaves its setting unchanged. */
export const BillingChange = Schema.Struct({
  billing_emails: Schema.optional(
    Schema.Array(Email).pipe(Schema.maxItems(10, { message: () => "must contain at most 10 addresses" }))
  ),
  member_spend_enabled: Schema.optional(Schema.Boolean)
}).annotations({ identifier: "BillingChange" })
export interface BillingChange extends Schema.Schema.Type<typeof BillingChange> {}
