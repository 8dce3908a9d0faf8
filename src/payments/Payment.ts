/** What a tenant pays, and with what. */
import { Schema } from "effect"

export const amountMin = 5
export const amountMax = 10_000

export const CreditAmount = Schema.Int.pipe(
  Schema.between(amountMin, amountMax, { message: () => `a whole number from ${amountMin} to ${amountMax}` })
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

/** What was refunded or disputed and could no longer be taken back. */
export interface Owed {
  readonly tenant_id: string
  readonly payment_id: string
  readonly owed: bigint
}

/** What was told of a payment that is not known. */
export interface Waiting {
  readonly payment_id: string
  /** How many refunds and disputes. */
  readonly movements: number
  readonly since: number
}
