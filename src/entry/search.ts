/** `tollgate/search`: web searches, admitted and charged. */
import { Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { Search } from "../search/Search.ts"
import "./contracts.ts"

export { Gate, Search }
export { SearchQuery } from "../search/Query.ts"
export { SearchProvider, SearchProviders } from "../search/Settings.ts"
export { UnknownProvider } from "../upstream/Provider.ts"
export * from "../upstream/Problems.ts"
export { Upstreams } from "../upstream/Upstreams.ts"

/** Searches behind the gate; wants a database, the providers and the upstreams. */
export const layer = Search.layer.pipe(Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer)))
