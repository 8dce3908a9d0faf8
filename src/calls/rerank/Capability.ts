/** The rerank capability. */
import { Effect } from "effect"
import { RerankHttp } from "./Http.ts"
import * as settings from "./Settings.ts"
import { Rerank } from "./Rerank.ts"

export const capability = {
  handlers: RerankHttp,
  layer: Rerank.layer,
  names: Effect.map(settings.RerankModels, (list) => list.map(({ id }) => id)),
  settings
}
