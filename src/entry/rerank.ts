/** `tollgate/rerank`: documents ordered by a query, admitted and charged. */
import { Layer } from "effect"
import { Rerank } from "../rerank/Rerank.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Rerank }
export type { RerankCall, Reranked } from "../rerank/Rerank.ts"
export { RerankRequest } from "../rerank/Ranking.ts"
export { RerankModel, RerankModels } from "../rerank/Settings.ts"
export { fields as settings, layer as layerSettings } from "../rerank/Settings.ts"
export { UnknownModel } from "../upstream/Provider.ts"
export { Upstreams } from "../upstream/Upstreams.ts"
export * from "../upstream/Problems.ts"
export { Payers } from "../gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../gate/Problems.ts"
export { BooksUnavailable } from "../ledger/Problems.ts"

/** Reranking behind the gate. Needs a database, `Payers`, `RerankModels` and `Upstreams`. */
export const layer = Rerank.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
