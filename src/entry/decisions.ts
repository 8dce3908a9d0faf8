/** `tollgate/decisions`: typed questions to a decision model, admitted and charged. */
import { Layer } from "effect"
import { Decisions } from "../decisions/Decisions.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Decisions }
export { DecisionRequest } from "../decisions/Decision.ts"
export * from "../decisions/Problems.ts"
export { ConfiguredDecisionModel, DecisionModel } from "../decisions/Settings.ts"
export { fields as settings, layer as layerSettings } from "../decisions/Settings.ts"
export { Upstreams } from "../upstream/Upstreams.ts"
export { Payers } from "../gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../gate/Problems.ts"
export { BooksUnavailable } from "../ledger/Problems.ts"

/** Decisions behind the gate. Needs a database, `Payers`, `ConfiguredDecisionModel` and `Upstreams`. */
export const layer = Decisions.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
