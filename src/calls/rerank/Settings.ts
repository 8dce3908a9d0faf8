/** The configuration section `rerank`. */
import { Context, Layer, Schema } from "effect"
import { modelFields, routesOf } from "../embeddings/Settings.ts"
import { UsdPer } from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { Count, distinct, readAs } from "../../kernel/Setting.ts"

const Price = Schema.Struct({
  /** USD per search. A search is a query with up to `documents_per_search` documents. */
  usd_per_search: Schema.optional(UsdPer(1)),
  input_usd_per_million: Schema.optional(UsdPer(1_000_000))
}).pipe(
  Schema.filter(
    ({ input_usd_per_million, usd_per_search }) => usd_per_search !== undefined || input_usd_per_million !== undefined,
    { message: () => "must contain usd_per_search, input_usd_per_million, or both" }
  )
)

export const RerankModel = readAs(
  Schema.Struct({
    ...modelFields,
    /** The maximum number of tokens that the model reads for a query with one document. */
    input_tokens_max: Schema.optionalWith(Count, { default: () => 4_096 }).pipe(Schema.fromKey("max_input_tokens")),
    documents_max: Schema.optionalWith(Count, { default: () => 1_000 }).pipe(Schema.fromKey("max_documents")),
    documents_per_search: Schema.optionalWith(Count, { default: () => 100 }),
    /** The maximum length of a document together with the query, in tokens. A longer document counts as several. */
    tokens_per_document: Schema.optionalWith(Count, { default: () => 500 }),
    price: Price
  }),
  ({ name, price, upstreams, ...model }) => ({
    ...model,
    name: name ?? model.id,
    /** USD per search and per input token. A missing price is 0. */
    search_price: price.usd_per_search ?? (0n as UnitPrice),
    token_price: price.input_usd_per_million ?? (0n as UnitPrice),
    routes: routesOf(model.id, upstreams)
  })
)
export interface RerankModel extends Schema.Schema.Type<typeof RerankModel> {}

export class RerankModels extends Context.Tag("tollgate/rerank/RerankModels")<
  RerankModels,
  ReadonlyArray<RerankModel>
>() {
  static readonly layer = (models: ReadonlyArray<RerankModel>) => Layer.succeed(RerankModels, models)
  static readonly layerNone = Layer.succeed(RerankModels, [])
}

export const fields = { rerank: Schema.optionalWith(distinct(RerankModel), { default: () => [] }) }

export const layer = ({ rerank }: { readonly rerank: ReadonlyArray<RerankModel> }) => RerankModels.layer(rerank)
