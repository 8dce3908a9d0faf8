/** `tollgate/embeddings`: embeddings of texts and tokens, admitted and charged. */
import { Layer } from "effect"
import { Embeddings } from "../embeddings/Embeddings.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Embeddings }
export type { Embedded, EmbeddingCall } from "../embeddings/Embeddings.ts"
export { EmbeddingRequest } from "../embeddings/Embedding.ts"
export { EmbeddingModel, EmbeddingModels } from "../embeddings/Settings.ts"
export { fields as settings, layer as layerSettings } from "../embeddings/Settings.ts"
export { UnknownModel } from "../upstream/Provider.ts"
export { Upstreams } from "../upstream/Upstreams.ts"
export * from "../upstream/Problems.ts"
export { Payers } from "../gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../gate/Problems.ts"
export { BooksUnavailable } from "../ledger/Problems.ts"

/** Embeddings behind the gate. Needs a database, `Payers`, `EmbeddingModels` and `Upstreams`. */
export const layer = Embeddings.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
