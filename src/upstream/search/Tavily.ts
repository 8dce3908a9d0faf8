/** Tavily's search: `POST /search`, with the key as a bearer token. A query costs one credit, and an `advanced` query costs two. */
import { Redacted } from "effect"
import { headerOf } from "../models/Credential.ts"
import { resultOf, resultsOf } from "./SearchVendor.ts"
import type { SearchVendor } from "./SearchVendor.ts"

/** Tavily's limit. */
const resultsMax = 20

export const tavily: SearchVendor = {
  queries_by_depth: { advanced: 2 },
  request: ({ domains, include_raw, max_results, query, search_depth }, key) => ({
    method: "POST",
    path: "/search",
    headers: { "content-type": "application/json", ...headerOf("bearer", Redacted.make(key)) },
    body: JSON.stringify({
      query,
      max_results: Math.min(max_results, resultsMax),
      include_raw_content: include_raw,
      search_depth,
      ...(domains.length > 0 && { include_domains: domains })
    })
  }),
  results: ({ results }) =>
    resultsOf(results, ({ content, raw_content, title, url }) => resultOf(url, title, content, raw_content))
}
