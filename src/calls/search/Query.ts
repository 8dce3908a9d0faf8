/** The search route's query parameters and response. */
import { ParseResult, Schema } from "effect"

export const resultsMax = 100

const Count = Schema.transformOrFail(
  Schema.String.annotations({ description: `The maximum number of results, up to ${resultsMax}; 10 by default` }),
  Schema.Int,
  {
    strict: true,
    decode: (text, _, ast) =>
      /^0*[1-9]\d{0,3}$/.test(text) && Number(text) <= resultsMax
        ? ParseResult.succeed(Number(text))
        : ParseResult.fail(new ParseResult.Type(ast, text, `must be a whole number from 1 to ${resultsMax}`)),
    encode: (count) => ParseResult.succeed(String(count))
  }
)

const Flag = Schema.transformOrFail(
  Schema.String.annotations({
    description: "Whether results include the full text of their pages: `true`, or `false` (the default)"
  }),
  Schema.Boolean,
  {
    strict: true,
    decode: (text, _, ast) =>
      text === "true" || text === "1"
        ? ParseResult.succeed(true)
        : text === "false" || text === "0" || text === ""
          ? ParseResult.succeed(false)
          : ParseResult.fail(new ParseResult.Type(ast, text, "must be true or false")),
    encode: (flag) => ParseResult.succeed(String(flag))
  }
)

const Domains = Schema.transformOrFail(
  Schema.String.annotations({
    description: "Restricts the results to these domains: up to 50, separated by commas"
  }),
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
        : ParseResult.fail(new ParseResult.Type(ast, text, "must be at most 50 domains, separated by commas"))
    },
    encode: (domains) => ParseResult.succeed(domains.join(","))
  }
)

export const SearchQuery = Schema.Struct({
  query: Schema.String.annotations({ description: "The search terms, up to 2,000 characters" }).pipe(
    Schema.filter((query) => query.trim() !== "" && query.length <= 2_000, {
      message: () => "must be 1 to 2000 characters long"
    })
  ),
  max_results: Schema.optionalWith(Count, { default: () => 10 }),
  provider: Schema.optional(Schema.String.annotations({ description: "The name of a provider; the first by default" })),
  include_raw: Schema.optionalWith(Flag, { default: () => false }),
  search_depth: Schema.optional(
    Schema.String.annotations({
      description: "`basic`, `advanced` or another depth that the provider accepts; sent unchanged"
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
