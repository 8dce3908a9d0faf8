/** `tollgate/search`: metered web searches. */
import { Layer } from "effect"
import { Search } from "../../calls/search/Search.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Search }
export { SearchQuery } from "../../calls/search/Query.ts"
export { SearchProvider, SearchProviders } from "../../calls/search/Settings.ts"
export { UnknownProvider } from "../../upstream/models/Provider.ts"
export { fields as settings, layer as layerSettings } from "../../calls/search/Settings.ts"
export { Upstreams } from "../../upstream/models/Upstreams.ts"
export * from "../../upstream/wire/Problems.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** Searches with admission. Requires a database, `Payers`, `SearchProviders` and `Upstreams`. */
export const layer = Search.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
