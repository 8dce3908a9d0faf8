/** Reads the limit on new transfers from the configuration file: `transfer_limits`. */
import { Context, Layer, Schema } from "effect"
import { Count } from "../../kernel/Setting.ts"

export const TransferLimitFacts = Schema.Struct({
  per_day: Schema.optionalWith(Count, { default: () => 1_000 })
})
export interface TransferLimitFacts extends Schema.Schema.Type<typeof TransferLimitFacts> {}

const presets: TransferLimitFacts = Schema.decodeSync(TransferLimitFacts)({})

/** The maximum number of transfers that a tenant may create in 24 hours. */
export class TransferLimits extends Context.Reference<TransferLimits>()("tollgate/transfers/TransferLimits", {
  defaultValue: () => presets
}) {}

export const fields = {
  transfer_limits: Schema.optionalWith(TransferLimitFacts, { default: () => presets })
}

export const layer = ({ transfer_limits }: { readonly transfer_limits: TransferLimitFacts }) =>
  Layer.succeed(TransferLimits, transfer_limits)
