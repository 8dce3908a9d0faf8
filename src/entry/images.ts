/** `tollgate/images`: images that are waited for, charged once. */
import { Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import { Images } from "../images/Images.ts"
import { Jobs } from "../media/Jobs.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Images, Jobs }
export { ImageRequest } from "../images/Image.ts"
export { ImagePatience } from "../images/Images.ts"
export * from "../images/Problems.ts"
export { ImageProvider, ImageProviders } from "../images/Settings.ts"
export { fields as settings, layer as layerSettings } from "../images/Settings.ts"
export { Upstreams } from "../upstream/Upstreams.ts"
export { Payers } from "../gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../gate/Problems.ts"
export { BooksUnavailable } from "../ledger/Problems.ts"

/** Images behind the gate. Needs a database, `Payers`, `ImageProviders` and `Upstreams`. */
export const layer = Images.layer.pipe(Layer.provideMerge(Jobs.layer), Layer.provideMerge(layerGate))

/** The loops of `layer`: open jobs are looked after though nobody asks, and what ended processes left is released. */
export const layerJobs = Layer.mergeAll(Gate.layerJobs, Jobs.layerJobs)
