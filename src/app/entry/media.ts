/** `tollgate/media`: images and videos that are quoted first, generated asynchronously and charged once. */
import { Layer } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import { Media } from "../../calls/media/Media.ts"
import { Jobs } from "../../calls/media/Jobs.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Media, Jobs }
export { MediaRequest, quoteOf, requestOf } from "../../calls/media/Model.ts"
export type { MediaModel, Quote } from "../../calls/media/Model.ts"
export * from "../../calls/media/Problems.ts"
export { MediaModels, MediaModelSetting } from "../../calls/media/Settings.ts"
export { fields as settings, layer as layerSettings } from "../../calls/media/Settings.ts"
export { Upstreams } from "../../upstream/models/Upstreams.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** Quotes and jobs, with admission. Requires a database, `Payers`, `MediaModels` and `Upstreams`. */
export const layer = Media.layer.pipe(Layer.provideMerge(Jobs.layer), Layer.provideMerge(layerGate))

/** The loops of `layer`. They poll open jobs and release the reservations of processes that have stopped. */
export const layerJobs = Layer.mergeAll(Gate.layerJobs, Jobs.layerJobs)
