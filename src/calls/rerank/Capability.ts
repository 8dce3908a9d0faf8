/** Reranking as one value. */
import { RerankHttp } from "./Http.ts"
import * as settings from "./Settings.ts"
import { Rerank } from "./Rerank.ts"

export const capability = { handlers: RerankHttp, layer: Rerank.layer, settings }
