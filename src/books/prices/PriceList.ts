/** The credit that a new account receives, in nano-USD. It is configured as `prices`. */
import { Context, Layer, Schema } from "effect"
import { Usd } from "../../kernel/Money.ts"

export const PriceListFacts = Schema.Struct({
  /** Credited to a new home tenant as `signup_grant`. */
  default_new_credits: Usd,
  /** Credited to a new home tenant as `registration_bonus`. */
  default_registration_credits: Usd
})
export interface PriceListFacts extends Schema.Schema.Type<typeof PriceListFacts> {}

const nothing: PriceListFacts = { default_new_credits: 0n, default_registration_credits: 0n }

export class PriceList extends Context.Tag("tollgate/prices/PriceList")<PriceList, PriceListFacts>() {
  static readonly layer = (prices: PriceListFacts) => Layer.succeed(PriceList, prices)
  /** Gives new accounts no credit. */
  static readonly layerNone = Layer.succeed(PriceList, nothing)
}

export const fields = { prices: Schema.optionalWith(PriceListFacts, { default: () => nothing }) }

export const layer = ({ prices }: { readonly prices: PriceListFacts }) => PriceList.layer(prices)
