/** Embeddings as one value. */
import { EmbeddingsHttp } from "./Http.ts"
import * as settings from "./Settings.ts"
import { Embeddings } from "./Embeddings.ts"

export const capability = { handlers: EmbeddingsHttp, layer: Embeddings.layer, settings }
