/** `tollgate/embeddings`: metered embeddings of text and tokens. */
import { Layer } from "effect"
import { Embeddings } from "../../calls/embeddings/Embeddings.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Embeddings }
export type { Embedded, EmbeddingCall } from "../../calls/embeddings/Embeddings.ts"
export { EmbeddingRequest } from "../../calls/embeddings/Embedding.ts"
export { EmbeddingModel, EmbeddingModels } from "../../calls/embeddings/Settings.ts"
export { fields as settings, layer as layerSettings } from "../../calls/embeddings/Settings.ts"
export { UnknownModel } from "../../upstream/models/Provider.ts"
export { Upstreams } from "../../upstream/models/Upstreams.ts"
export * from "../../upstream/wire/Problems.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** Embeddings with admission. Requires a database, `Payers`, `EmbeddingModels` and `Upstreams`. */
export const layer = Embeddings.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
