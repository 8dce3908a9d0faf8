/** The configuration section `tools.search`. */
import { Context, Layer, Schema } from "effect"
import { UsdPer } from "../../kernel/Price.ts"
import { distinct, NonEmpty, readAs } from "../../kernel/Setting.ts"
import { named, providerFields } from "../../upstream/models/Provider.ts"
import { pricesByDepth, searchVendors } from "./Provider.ts"
import type { SearchVendorName } from "./Provider.ts"

export const SearchProvider = readAs(
  Schema.Struct({
    ...providerFields,
    /** The vendor that defines the wire format. */
    vendor: Schema.Literal(...(Object.keys(searchVendors) as ReadonlyArray<SearchVendorName>)),
    /** USD per query. A price for the query's depth takes precedence. */
    price: Schema.propertySignature(UsdPer(1)).pipe(Schema.fromKey("usd_per_query")),
    /**
     * USD per query at each depth. By default, a depth costs as many queries as the vendor bills for it (Tavily bills an `advanced` query as two).
     */
    price_by_depth: Schema.optional(Schema.Record({ key: NonEmpty, value: UsdPer(1) })).pipe(
      Schema.fromKey("usd_per_query_by_depth")
    )
  }),
  ({ price_by_depth, ...entry }) => ({
    ...named(entry),
    price_by_depth: price_by_depth ?? pricesByDepth(entry.vendor, entry.price)
  })
)
export interface SearchProvider extends Schema.Schema.Type<typeof SearchProvider> {}

/** The configured search providers. The first is the default. */
export class SearchProviders extends Context.Tag("tollgate/search/SearchProviders")<
  SearchProviders,
  ReadonlyArray<SearchProvider>
>() {
  static readonly layer = (providers: ReadonlyArray<SearchProvider>) => Layer.succeed(SearchProviders, providers)
  static readonly layerNone = Layer.succeed(SearchProviders, [])
}

export const fields = { search: Schema.optionalWith(distinct(SearchProvider), { default: () => [] }) }

export const layer = ({ search }: { readonly search: ReadonlyArray<SearchProvider> }) => SearchProviders.layer(search)
