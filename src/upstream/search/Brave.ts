/**
 * Brave's web search: `GET /res/v1/web/search`, with the key in the header `X-Subscription-Token`. Brave supports neither raw pages nor depths. A
 * response without results contains no `web`.
 */
import { isObject } from "../wire/Failures.ts"
import { resultOf, resultsOf } from "./SearchVendor.ts"
import type { SearchVendor } from "./SearchVendor.ts"

/** Brave's limit. */
const resultsMax = 20

export const brave: SearchVendor = {
  queries_by_depth: {},
  request: ({ domains, max_results, query }, key) => {
    const sites = domains.map((domain) => `site:${domain}`).join(" OR ")
    const params = new URLSearchParams({
      q: sites === "" ? query : `${query} (${sites})`,
      count: String(Math.min(max_results, resultsMax))
    })
    return {
      method: "GET",
      path: `/res/v1/web/search?${params}`,
      headers: { accept: "application/json", ...(key !== "" && { "x-subscription-token": key }) }
    }
  },
  results: ({ error, web }) => {
    if (error !== undefined) return undefined
    const found = web ?? {}
    if (!isObject(found)) return undefined
    return resultsOf(found.results ?? [], ({ description, title, url }) => resultOf(url, title, description))
  }
}
