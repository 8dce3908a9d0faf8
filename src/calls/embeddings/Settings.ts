/** The configuration section `embeddings`. */
import { Context, Layer, Schema } from "effect"
import { UsdPer } from "../../kernel/Price.ts"
import { Count, distinct, NonEmpty, readAs } from "../../kernel/Setting.ts"

/** The upstreams, in the order they are tried. Each serves `/embeddings` or `/rerank` below its address. */
export const Routes = Schema.NonEmptyArray(Schema.Struct({ upstream: NonEmpty, model: Schema.optional(NonEmpty) }))

/** Returns a model's routes. By default, the upstream's name for the model is its id. */
export const routesOf = (id: string, upstreams: typeof Routes.Type) =>
  upstreams.map(({ model = id, upstream }) => ({ upstream, model }))

/** Settings common to embedding and rerank models, without the price. */
export const modelFields = {
  id: NonEmpty,
  name: Schema.optional(NonEmpty),
  description: Schema.optionalWith(Schema.String, { default: () => "" }),
  owned_by: Schema.optionalWith(NonEmpty, { default: () => "system" }),
  /** The maximum number of tokens that the upstream can add to each input. */
  added_tokens_max: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 0 }).pipe(
    Schema.fromKey("max_added_tokens")
  ),
  upstreams: Routes
} as const

export const EmbeddingModel = readAs(
  Schema.Struct({
    ...modelFields,
    /** The maximum length of an input, in tokens. */
    input_tokens_max: Schema.propertySignature(Count).pipe(Schema.fromKey("max_input_tokens")),
    inputs_max: Schema.optionalWith(Count, { default: () => 2_048 }).pipe(Schema.fromKey("max_inputs")),
    dimensions: Schema.optional(Count),
    /** Whether a request may specify fewer dimensions. */
    shortens: Schema.optionalWith(Schema.Boolean, { default: () => false }),
    price: Schema.Struct({ input_usd_per_million: UsdPer(1_000_000) })
  }),
  ({ name, price, upstreams, ...model }) => ({
    ...model,
    name: name ?? model.id,
    /** USD per input token. */
    price: price.input_usd_per_million,
    routes: routesOf(model.id, upstreams)
  })
)
export interface EmbeddingModel extends Schema.Schema.Type<typeof EmbeddingModel> {}

export class EmbeddingModels extends Context.Tag("tollgate/embeddings/EmbeddingModels")<
  EmbeddingModels,
  ReadonlyArray<EmbeddingModel>
>() {
  static readonly layer = (models: ReadonlyArray<EmbeddingModel>) => Layer.succeed(EmbeddingModels, models)
  static readonly layerNone = Layer.succeed(EmbeddingModels, [])
}

export const fields = { embeddings: Schema.optionalWith(distinct(EmbeddingModel), { default: () => [] }) }

export const layer = ({ embeddings }: { readonly embeddings: ReadonlyArray<EmbeddingModel> }) =>
  EmbeddingModels.layer(embeddings)
