/** The searches' task for the long-body thread, and its result. `ThreadWork` performs it. */
import type { SearchResult } from "../../upstream/search/SearchVendor.ts"
import type { Task } from "../threads/Task.ts"
import type { SearchVendorName } from "./Provider.ts"

/** Reads the first results of a vendor's response. */
export interface ReadResultsTask extends Task<ResultsDone> {
  readonly how: "read_results"
  readonly vendor: SearchVendorName
  readonly max_results: number
}

export interface ResultsDone {
  /** The results, or `undefined` if the response contains none. */
  readonly results: ReadonlyArray<SearchResult> | undefined
}
