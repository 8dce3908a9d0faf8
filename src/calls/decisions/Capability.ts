/** The decisions capability. */
import { Effect } from "effect"
import { DecisionsHttp } from "./Http.ts"
import * as settings from "./Settings.ts"
import { Decisions } from "./Decisions.ts"

export const capability = {
  handlers: DecisionsHttp,
  layer: Decisions.layer,
  names: Effect.map(settings.ConfiguredDecisionModel, (one) => (one === undefined ? [] : [one.model])),
  settings
}
