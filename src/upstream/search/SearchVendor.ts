/** What is asked of a search vendor and what it finds; each vendor's file says how that looks on its wire. */
import { isObject } from "../Failures.ts"
import type { WireRequest } from "../Wire.ts"

export interface SearchAsk {
  readonly query: string
  readonly max_results: number
  readonly include_raw: boolean
  /** In the vendor's own word, where it knows the difference. */
  readonly search_depth: string
  /** Only pages of these; all where it is empty. */
  readonly domains: ReadonlyArray<string>
}

export interface SearchResult {
  readonly title: string
  readonly url: string
  readonly content: string
  readonly raw_content?: string
}

export interface SearchVendor {
  /** Depths of which the vendor counts a query as several. */
  readonly queries_by_depth: Readonly<Record<string, number>>
  readonly request: (ask: SearchAsk, key: string) => WireRequest
  /** The results in its answer; `undefined` where that makes no sense, and where it lists some of which none is usable. */
  readonly results: (answer: Record<string, unknown>) => ReadonlyArray<SearchResult> | undefined
}

/**
 * A vendor's list, read one by one. Found nothing is an answer; found what is of no use is none, and must not be paid for.
 */
export const resultsOf = (
  list: unknown,
  read: (one: Record<string, unknown>) => ReadonlyArray<SearchResult>
): ReadonlyArray<SearchResult> | undefined => {
  if (!Array.isArray(list)) return undefined
  const results = list.flatMap((one: unknown) => (isObject(one) ? read(one) : []))
  return results.length === 0 && list.length > 0 ? undefined : results
}

/** A result with what every one must have; what a vendor leaves out is empty, and one without an address is none. */
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
