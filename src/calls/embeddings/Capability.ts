/** The embeddings capability. */
import { Effect } from "effect"
import { EmbeddingsHttp } from "./Http.ts"
import * as settings from "./Settings.ts"
import { Embeddings } from "./Embeddings.ts"

export const capability = {
  handlers: EmbeddingsHttp,
  layer: Embeddings.layer,
  names: Effect.map(settings.EmbeddingModels, (list) => list.map(({ id }) => id)),
  settings
}
