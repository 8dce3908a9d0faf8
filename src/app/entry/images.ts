/** `tollgate/images`: image generation, charged once. A call returns when its images are complete. */
import { Layer } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import { Images } from "../../calls/images/Images.ts"
import { Jobs } from "../../calls/media/Jobs.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Images, Jobs }
export { ImageRequest } from "../../calls/images/Image.ts"
export { ImagePatience } from "../../calls/images/Images.ts"
export * from "../../calls/images/Problems.ts"
export { ImageProvider, ImageProviders } from "../../calls/images/Settings.ts"
export { fields as settings, layer as layerSettings } from "../../calls/images/Settings.ts"
export type { FileDownload } from "../../upstream/wire/Download.ts"
export { Upstreams } from "../../upstream/models/Upstreams.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** Images with admission. Requires a database, `Payers`, `ImageProviders` and `Upstreams`. */
export const layer = Images.layer.pipe(Layer.provideMerge(Jobs.layer), Layer.provideMerge(layerGate))

/** The loops of `layer`. They poll open jobs and release the reservations of processes that have stopped. */
export const layerJobs = Layer.mergeAll(Gate.layerJobs, Jobs.layerJobs)
