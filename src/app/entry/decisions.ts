/** `tollgate/decisions`: metered questions to a decision model, with typed answers. */
import { Layer } from "effect"
import { Decisions } from "../../calls/decisions/Decisions.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Decisions }
export { DecisionRequest } from "../../calls/decisions/Decision.ts"
export * from "../../calls/decisions/Problems.ts"
export { ConfiguredDecisionModel, DecisionModel } from "../../calls/decisions/Settings.ts"
export { fields as settings, layer as layerSettings } from "../../calls/decisions/Settings.ts"
export { Upstreams } from "../../upstream/models/Upstreams.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** Decisions with admission. Requires a database, `Payers`, `ConfiguredDecisionModel` and `Upstreams`. */
export const layer = Decisions.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
