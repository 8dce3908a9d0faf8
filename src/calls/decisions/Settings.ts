/** The configuration section `decisions`. */
import { Context, Layer, Schema } from "effect"
import { UsdPer } from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { NonEmpty, readAs } from "../../kernel/Setting.ts"

const DecisionEntry = Schema.Struct({
  /** The upstream's configured name. */
  upstream: NonEmpty,
  /** The path appended to the upstream's address. */
  path: Schema.optionalWith(NonEmpty, { default: () => "/v1/systemone" }),
  /** The model's name at the upstream. */
  model: NonEmpty,
  /** The names that callers may use for the model. The first one is the default. */
  spellings: Schema.optionalWith(Schema.NonEmptyArray(NonEmpty), {
    default: () => ["jev-1.13", "jev-1.13.0", "jev-latest"] as const
  }),
  price: Schema.optionalWith(Schema.Struct({ input_usd_per_million: UsdPer(1_000_000) }), {
    default: () => ({ input_usd_per_million: 42_000_000_000n as UnitPrice })
  })
})

export const DecisionModel = readAs(DecisionEntry, ({ price, ...model }) => ({
  ...model,
  /** USD per input token. Output tokens are free. */
  input_price: price.input_usd_per_million
}))
export interface DecisionModel extends Schema.Schema.Type<typeof DecisionModel> {}

export class ConfiguredDecisionModel extends Context.Tag("tollgate/decisions/ConfiguredDecisionModel")<
  ConfiguredDecisionModel,
  DecisionModel | undefined
>() {
  static readonly layer = (model: DecisionModel) => Layer.succeed(ConfiguredDecisionModel, model)
  /** Without a decision model, the routes respond with 503. */
  static readonly layerNone = Layer.succeed(ConfiguredDecisionModel, undefined)
}

export const fields = { decisions: Schema.optional(DecisionModel) }

export const layer = ({ decisions }: { readonly decisions?: DecisionModel | undefined }) =>
  decisions === undefined ? ConfiguredDecisionModel.layerNone : ConfiguredDecisionModel.layer(decisions)
