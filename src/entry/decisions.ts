/** `tollgate/decisions`: typed questions to a decision model, admitted and charged. */
import { Layer } from "effect"
import { Decisions } from "../decisions/Decisions.ts"
import { Gate } from "../gate/Gate.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import "./contracts.ts"

export { Decisions, Gate }
export { DecisionRequest } from "../decisions/Decision.ts"
export { ConfiguredDecisionModel, DecisionModel } from "../decisions/Settings.ts"
export * from "../decisions/Problems.ts"
export { Upstreams } from "../upstream/Upstreams.ts"

/** Decisions behind the gate; wants a database and the upstreams. */
export const layer = Decisions.layer.pipe(Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer)))
