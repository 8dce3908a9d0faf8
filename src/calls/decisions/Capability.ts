/** Decisions as one value. */
import { DecisionsHttp } from "./Http.ts"
import * as settings from "./Settings.ts"
import { Decisions } from "./Decisions.ts"

export const capability = { handlers: DecisionsHttp, layer: Decisions.layer, settings }
