/** The interface of search vendors. Each vendor's file converts requests and results to and from the vendor's wire format. */
import { isObject } from "../wire/Failures.ts"
import type { WireRequest } from "../wire/Wire.ts"

export interface SearchAsk {
  readonly query: string
  readonly max_results: number
  readonly include_raw: boolean
  /** The vendor's own value, such as `basic` or `advanced`. A vendor without search depths ignores it. */
  readonly search_depth: string
  /** The domains that results must belong to; unrestricted if empty. */
  readonly domains: ReadonlyArray<string>
}

export interface SearchResult {
  readonly title: string
  readonly url: string
  readonly content: string
  readonly raw_content?: string
}

export interface SearchVendor {
  /** The number of queries that the vendor charges per search, by search depth. An unlisted depth counts as one query. */
  readonly queries_by_depth: Readonly<Record<string, number>>
  readonly request: (ask: SearchAsk, key: string) => WireRequest
  /** Reads the results from a response. Returns `undefined` if the response is invalid. */
  readonly results: (answer: Record<string, unknown>) => ReadonlyArray<SearchResult> | undefined
}

/** Reads a vendor's array of results. An empty array is valid. An array without any usable entry is invalid and not charged. */
export const resultsOf = (
  list: unknown,
  read: (one: Record<string, unknown>) => ReadonlyArray<SearchResult>
): ReadonlyArray<SearchResult> | undefined => {
  if (!Array.isArray(list)) return undefined
  const results = list.flatMap((one: unknown) => (isObject(one) ? read(one) : []))
  return results.length === 0 && list.length > 0 ? undefined : results
}

/** Returns one result, or none if the URL is missing. A missing title or content becomes an empty string. */
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
