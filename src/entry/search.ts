/** `tollgate/search`: web searches, admitted and charged. */
import { Layer } from "effect"
import { Search } from "../search/Search.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Search }
export { SearchQuery } from "../search/Query.ts"
export { SearchProvider, SearchProviders } from "../search/Settings.ts"
export { UnknownProvider } from "../upstream/Provider.ts"
export { fields as settings, layer as layerSettings } from "../search/Settings.ts"
export { Upstreams } from "../upstream/Upstreams.ts"
export * from "../upstream/Problems.ts"
export { Payers } from "../gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../gate/Problems.ts"
export { BooksUnavailable } from "../ledger/Problems.ts"

/** Searches behind the gate. Needs a database, `Payers`, `SearchProviders` and `Upstreams`. */
export const layer = Search.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
