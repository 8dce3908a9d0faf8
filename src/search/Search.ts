/** A web search: what may be asked, what is found, and who is asked for how much. */
import { Context, ParseResult, Schema } from "effect"
import type { UnitPrice } from "../kernel/Price.ts"
import type { Provider } from "../upstream/Provider.ts"
import { brave } from "../upstream/search/Brave.ts"
import type { SearchVendor } from "../upstream/search/SearchVendor.ts"
import { tavily } from "../upstream/search/Tavily.ts"

/** The vendors whose wire is known here, by the names that the configuration calls them. */
export const searchVendors = { tavily, brave } as const satisfies Record<string, SearchVendor>
export type SearchVendorName = keyof typeof searchVendors

export interface SearchProvider extends Provider {
  readonly vendor: SearchVendorName
  /** USD a query, unless its depth has a price of its own. */
  readonly price: UnitPrice
  readonly price_by_depth: Readonly<Record<string, UnitPrice>>
}

/** The prices of a vendor's depths, by how often it counts a query of each. */
export const pricesByDepth = (vendor: SearchVendorName, price: UnitPrice): SearchProvider["price_by_depth"] =>
  Object.fromEntries(
    Object.entries(searchVendors[vendor].queries_by_depth).map(([depth, queries]) => [
      depth,
      (price * BigInt(queries)) as UnitPrice
    ])
  )

export class SearchProviders extends Context.Reference<SearchProviders>()("tollgate/search/SearchProviders", {
  defaultValue: (): ReadonlyArray<SearchProvider> => []
}) {}

/** The depth of a query that names none. */
export const defaultDepth = "basic"

/**
 * What a query costs. Of a provider whose depths are priced, one that the configuration does not know is charged as its dearest: the
 * provider may take it, and what it then bills is not known here.
 */
export const priceOf = ({ price, price_by_depth }: SearchProvider, depth: string): UnitPrice => {
  if (Object.hasOwn(price_by_depth, depth)) return price_by_depth[depth]!
  if (depth === defaultDepth) return price
  return Object.values(price_by_depth).reduce((dearest, one) => (one > dearest ? one : dearest), price)
}

export const resultsMax = 100

const Count = Schema.transformOrFail(
  Schema.String.annotations({ description: `How many results at most, up to ${resultsMax}; 10 unless said otherwise` }),
  Schema.Int,
  {
    strict: true,
    decode: (text, _, ast) =>
      /^0*[1-9]\d{0,3}$/.test(text) && Number(text) <= resultsMax
        ? ParseResult.succeed(Number(text))
        : ParseResult.fail(new ParseResult.Type(ast, text, `a whole number from 1 to ${resultsMax}`)),
    encode: (count) => ParseResult.succeed(String(count))
  }
)

const Flag = Schema.transformOrFail(
  Schema.String.annotations({
    description: "`true`, or `false`, the default: whether results hold the whole text of their pages"
  }),
  Schema.Boolean,
  {
    strict: true,
    decode: (text, _, ast) =>
      text === "true" || text === "1"
        ? ParseResult.succeed(true)
        : text === "false" || text === "0" || text === ""
          ? ParseResult.succeed(false)
          : ParseResult.fail(new ParseResult.Type(ast, text, "true or false")),
    encode: (flag) => ParseResult.succeed(String(flag))
  }
)

const Domains = Schema.transformOrFail(
  Schema.String.annotations({ description: "Up to 50 domains with commas between them: only results from these" }),
  Schema.Array(Schema.String),
  {
    strict: true,
    decode: (text, _, ast) => {
      const domains = text
        .split(",")
        .map((domain) => domain.trim().toLowerCase())
        .filter((domain) => domain !== "")
      return domains.every((domain) => /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(domain)) && domains.length <= 50
        ? ParseResult.succeed(domains)
        : ParseResult.fail(new ParseResult.Type(ast, text, "up to 50 domains, separated by commas"))
    },
    encode: (domains) => ParseResult.succeed(domains.join(","))
  }
)

export const SearchQuery = Schema.Struct({
  query: Schema.String.annotations({ description: "What is searched for, up to 2,000 characters" }).pipe(
    Schema.filter((query) => query.trim() !== "" && query.length <= 2_000, {
      message: () => "a text of 1 to 2000 characters"
    })
  ),
  max_results: Schema.optionalWith(Count, { default: () => 10 }),
  provider: Schema.optional(
    Schema.String.annotations({ description: "Who is asked, a name of the providers; the first unless said otherwise" })
  ),
  include_raw: Schema.optionalWith(Flag, { default: () => false }),
  search_depth: Schema.optional(
    Schema.String.annotations({
      description: "`basic`, `advanced` or another that the provider knows: it is passed on as it is"
    })
  ),
  domains: Schema.optionalWith(Domains, { default: () => [] })
})
export interface SearchQuery extends Schema.Schema.Type<typeof SearchQuery> {}

export const SearchAnswer = Schema.Struct({
  query: Schema.String,
  results: Schema.Array(
    Schema.Struct({
      title: Schema.String,
      url: Schema.String,
      content: Schema.String,
      raw_content: Schema.optional(Schema.String)
    })
  ),
  provider: Schema.optional(Schema.String),
  error: Schema.optional(Schema.String)
}).annotations({ identifier: "SearchAnswer" })
