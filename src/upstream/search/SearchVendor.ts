/** A request to a search vendor, and its answer. Each vendor's file translates between this and its wire format. */
import { isObject } from "../wire/Failures.ts"
import type { WireRequest } from "../wire/Wire.ts"

export interface SearchAsk {
  readonly query: string
  readonly max_results: number
  readonly include_raw: boolean
  /** The vendor's own value: `basic`, `advanced`. A vendor without depths ignores it. */
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
  /** How many queries the vendor counts for one of a depth, if more than one. */
  readonly queries_by_depth: Readonly<Record<string, number>>
  readonly request: (ask: SearchAsk, key: string) => WireRequest
  /** The results in its answer; `undefined` without a list of results, or if none in the list is usable. */
  readonly results: (answer: Record<string, unknown>) => ReadonlyArray<SearchResult> | undefined
}

/** Reads a vendor's list of results. An empty list is a valid answer. A list without a usable entry is invalid and not charged. */
export const resultsOf = (
  list: unknown,
  read: (one: Record<string, unknown>) => ReadonlyArray<SearchResult>
): ReadonlyArray<SearchResult> | undefined => {
  if (!Array.isArray(list)) return undefined
  const results = list.flatMap((one: unknown) => (isObject(one) ? read(one) : []))
  return results.length === 0 && list.length > 0 ? undefined : results
}

/** A result. A missing title or content is empty. Without an address there is no result. */
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
