/** What a tenant sees of its money: the balance, the ledger, the billing account. */
import { Schema } from "effect"
import { Email } from "../../kernel/Email.ts"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { PageQuery, Paginated } from "../../kernel/Page.ts"

export interface Credits extends Schema.Schema.Type<typeof Credits> {}
export const Credits = Schema.Struct({ balance: Usd }).annotations({ identifier: "Credits" })

/** The sources that an entry may have. */
export const entrySources = [
  "purchase",
  "registration_bonus",
  "signup_grant",
  "admin",
  "transfer_escrow",
  "transfer_release",
  "transfer_return"
] as const

export interface LedgerEntry extends Schema.Schema.Type<typeof LedgerEntry> {}
export const LedgerEntry = Schema.Struct({
  id: Schema.String,
  billing_account_id: Schema.String,
  type: Schema.Literal("credit", "debit"),
  /** Positive; `type` gives the direction. */
  amount: Usd,
  /** After the entry. */
  balance: Usd,
  description: Schema.String,
  reference_id: Schema.String,
  created_at: Moment,
  /** A charge has none. */
  source: Schema.optionalWith(Schema.Literal(...entrySources), { exact: true })
}).annotations({ identifier: "LedgerEntry" })

export interface LedgerQuery extends Schema.Schema.Type<typeof LedgerQuery> {}
export const LedgerQuery = Schema.Struct({
  ...PageQuery,
  source: Schema.optionalWith(
    Schema.String.annotations({
      description: "Only entries of these sources, with commas between them; or `call`: only charges, which have none"
    }),
    { exact: true }
  )
})

export interface LedgerPage extends Schema.Schema.Type<typeof LedgerPage> {}
export const LedgerPage = Paginated(LedgerEntry).annotations({ identifier: "LedgerPage" })

/** What a balance is made of, and what is not to be had of it now. */
export interface Amounts extends Schema.Schema.Type<typeof Amounts> {}
export const Amounts = Schema.Struct({
  balance: Usd,
  /** The parts of the balance: what may be sent on, and what may not. */
  giftable: Usd,
  granted: Usd,
  /** In escrow of pending transfers; no part of the balance. */
  held: Usd,
  /** The part of the balance that calls have set aside which run now. */
  reserved: Usd,
  /** What is left of the balance for further calls. */
  available: Usd
}).annotations({ identifier: "Amounts" })

/** What a tenant may set about its billing account, and what holds until it does. */
export interface Settings {
  readonly billing_emails: ReadonlyArray<string>
  /** Whether members may spend the tenant's credit: as it was set, else as follows from the plan. */
  readonly member_spend_enabled: boolean
  /** The same: what holds, and whether it was set or follows. */
  readonly member_spend_effective: boolean
  readonly member_spend_source: "explicit" | "default"
}

export interface BillingAccount extends Schema.Schema.Type<typeof BillingAccount> {}
export const BillingAccount = Schema.Struct({
  status: Schema.Literal("active", "suspended", "closed"),
  credits: Usd,
  /** The part of `credits` that may be sent on. */
  giftable_credits: Usd,
  /** In escrow of pending transfers; no part of `credits`. */
  held_credits: Usd,
  has_been_funded: Schema.Boolean,
  member_spend_effective: Schema.Boolean,
  member_spend_source: Schema.Literal("explicit", "default"),
  billing_emails: Schema.Array(Schema.String),
  member_spend_enabled: Schema.Boolean
}).annotations({ identifier: "BillingAccount" })

/** What an owner or admin may change; what is not given stays. */
export const BillingChange = Schema.Struct({
  billing_emails: Schema.optional(
    Schema.Array(Email).pipe(Schema.maxItems(10, { message: () => "up to 10 addresses" }))
  ),
  member_spend_enabled: Schema.optional(Schema.Boolean)
}).annotations({ identifier: "BillingChange" })
export interface BillingChange extends Schema.Schema.Type<typeof BillingChange> {}
