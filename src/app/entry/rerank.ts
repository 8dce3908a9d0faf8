/** `tollgate/rerank`: metered ranking of documents for a query. */
import { Layer } from "effect"
import { Rerank } from "../../calls/rerank/Rerank.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Rerank }
export type { RerankCall, Reranked } from "../../calls/rerank/Rerank.ts"
export { RerankRequest } from "../../calls/rerank/Ranking.ts"
export { RerankModel, RerankModels } from "../../calls/rerank/Settings.ts"
export { fields as settings, layer as layerSettings } from "../../calls/rerank/Settings.ts"
export { UnknownModel } from "../../upstream/models/Provider.ts"
export { Upstreams } from "../../upstream/models/Upstreams.ts"
export * from "../../upstream/wire/Problems.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** Reranking with admission. Requires a database, `Payers`, `RerankModels` and `Upstreams`. */
export const layer = Rerank.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
