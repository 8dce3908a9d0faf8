/** Requests to search vendors, and their results. Each vendor's file translates them to and from its wire format. */
import { isObject } from "../wire/Failures.ts"
import type { WireRequest } from "../wire/Wire.ts"

export interface SearchAsk {
  readonly query: string
  readonly max_results: number
  readonly include_raw: boolean
  /** The vendor's own value: `basic` or `advanced`. A vendor without depths ignores it. */
  readonly search_depth: string
  /** Restricts the results to these domains, if any. */
  readonly domains: ReadonlyArray<string>
}

export interface SearchResult {
  readonly title: string
  readonly url: string
  readonly content: string
  readonly raw_content?: string
}

export interface SearchVendor {
  /** The number of queries that the vendor charges per search, by search depth. Depths not listed count as one. */
  readonly queries_by_depth: Readonly<Record<string, number>>
  readonly request: (ask: SearchAsk, key: string) => WireRequest
  /** Reads the results from a response; `undefined` if the response is invalid. */
  readonly results: (answer: Record<string, unknown>) => ReadonlyArray<SearchResult> | undefined
}

/** Reads a vendor's list of results. An empty list is valid. A list with entries but no usable one is invalid and not charged. */
export const resultsOf = (
  list: unknown,
  read: (one: Record<string, unknown>) => ReadonlyArray<SearchResult>
): ReadonlyArray<SearchResult> | undefined => {
  if (!Array.isArray(list)) return undefined
  const results = list.flatMap((one: unknown) => (isObject(one) ? read(one) : []))
  return results.length === 0 && list.length > 0 ? undefined : results
}

/** One result, or an empty array if the URL is missing. A missing title or content becomes empty. */
export const resultOf = (url: unknown, title: unknown, content: unknown, raw_content?: unknown): Array<SearchResult> =>
  typeof url === "string" && url !== ""
    ? [
        {
          title: typeof title === "string" ? title : "",
          url,
          content: typeof content === "string" ? content : "",
          ...(typeof raw_content === "string" && { raw_content })
        }
      ]
    : []
