/** A tenant's payments and payment methods, and the constraints on amounts. */
import { Schema } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { usd, Usd } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { Paginated } from "../../kernel/Page.ts"

/** Returns the schema of an amount in whole credits: a whole number of USD on the wire, nano-USD in memory. */
const wholeCredits = (
  credits: Schema.Schema<number>,
  amount: Schema.Schema<Nano> = Schema.BigIntFromSelf
): Schema.Schema<Nano, number> =>
  Schema.transform(credits, amount, {
    strict: true,
    decode: (number) => BigInt(number) * usd,
    encode: (amount) => Number(amount / usd)
  })
export const WholeCredits = wholeCredits(Schema.Int)

/** The limits on one purchase, in USD. */
export const creditsMin = 5
export const creditsMax = 10_000
export const creditRule = `must be a whole number from ${creditsMin} to ${creditsMax}`
export const isCreditAmount = (amount: Nano): boolean =>
  amount % usd === 0n && amount >= BigInt(creditsMin) * usd && amount <= BigInt(creditsMax) * usd

export const CreditAmount = wholeCredits(
  Schema.Int.pipe(Schema.between(creditsMin, creditsMax, { message: () => creditRule })),
  // The documentation shows the number as it appears on the wire.
  Schema.BigIntFromSelf.annotations({
    title: `between(${creditsMin}, ${creditsMax})`,
    description: `a number between ${creditsMin} and ${creditsMax}`
  })
)

export const NewCheckout = Schema.Struct({ amount_credits: CreditAmount }).annotations({ identifier: "NewCheckout" })

export const Checkout = Schema.Struct({ checkout_url: Schema.String }).annotations({ identifier: "Checkout" })
export const Setup = Schema.Struct({ setup_url: Schema.String }).annotations({ identifier: "PaymentMethodSetup" })

export const PaymentMethod = Schema.Struct({
  id: Schema.String,
  type: Schema.String,
  brand: Schema.NullOr(Schema.String),
  last4: Schema.NullOr(Schema.String),
  exp_month: Schema.NullOr(Schema.Int),
  exp_year: Schema.NullOr(Schema.Int)
}).annotations({ identifier: "PaymentMethod" })

export const PaymentMethods = Schema.Struct({ payment_methods: Schema.Array(PaymentMethod) }).annotations({
  identifier: "PaymentMethods"
})

const PaymentMovement = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literal("refund", "dispute"),
  amount: Usd,
  /** Whether the refund failed or the disputed amount was reinstated. */
  returned: Schema.Boolean,
  at: Moment
})

export const Purchase = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literal("checkout", "auto_reload", "offline"),
  amount: Usd,
  created_at: Moment,
  /** The amount taken back for refunds and disputes. */
  taken_back: Usd,
  /** The amount still owed. Collected as soon as credit is released or added. */
  owed: Usd,
  /** Refunds and disputes, oldest first. */
  movements: Schema.Array(PaymentMovement)
}).annotations({ identifier: "Purchase" })
export interface Purchase extends Schema.Schema.Type<typeof Purchase> {}

export const PurchasePage = Paginated(Purchase).annotations({ identifier: "PurchasePage" })

/** The amount that a tenant still owes for a payment's refunds and disputes. */
export interface Owed {
  readonly tenant_id: TenantId
  readonly payment_id: string
  readonly owed: Nano
}

/** Refunds and disputes for a payment that has not been recorded. `since` is the arrival time of the first. */
export interface Waiting {
  readonly payment_id: string
  readonly movements: number
  readonly since: number
}
