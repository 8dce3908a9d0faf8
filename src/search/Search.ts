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
  /** USD a query. */
  readonly price: UnitPrice
}

export class SearchProviders extends Context.Reference<SearchProviders>()("tollgate/search/SearchProviders", {
  defaultValue: (): ReadonlyArray<SearchProvider> => []
}) {}

export const resultsMax = 100

const Count = Schema.transformOrFail(Schema.String, Schema.Int, {
  strict: true,
  decode: (text, _, ast) =>
    /^0*[1-9]\d{0,3}$/.test(text) && Number(text) <= resultsMax
      ? ParseResult.succeed(Number(text))
      : ParseResult.fail(new ParseResult.Type(ast, text, `a whole number from 1 to ${resultsMax}`)),
  encode: (count) => ParseResult.succeed(String(count))
})

const Flag = Schema.transformOrFail(Schema.String, Schema.Boolean, {
  strict: true,
  decode: (text, _, ast) =>
    text === "true" || text === "1"
      ? ParseResult.succeed(true)
      : text === "false" || text === "0" || text === ""
        ? ParseResult.succeed(false)
        : ParseResult.fail(new ParseResult.Type(ast, text, "true or false")),
  encode: (flag) => ParseResult.succeed(String(flag))
})

const Domains = Schema.transformOrFail(Schema.String, Schema.Array(Schema.String), {
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
})

export const SearchQuery = Schema.Struct({
  query: Schema.String.pipe(
    Schema.filter((query) => query.trim() !== "" && query.length <= 2_000, {
      message: () => "a text of 1 to 2000 characters"
    })
  ),
  max_results: Schema.optionalWith(Count, { default: () => 10 }),
  provider: Schema.optional(Schema.String),
  include_raw: Schema.optionalWith(Flag, { default: () => false }),
  /** Where the provider knows the difference. */
  search_depth: Schema.optional(
    Schema.Literal("basic", "advanced").annotations({
      message: () => ({ message: "one of basic, advanced", override: true })
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
