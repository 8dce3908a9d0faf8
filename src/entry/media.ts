/** `tollgate/media`: images and videos by quote, made by a vendor in its own time, charged once. */
import { Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import { Images } from "../images/Images.ts"
import { Jobs } from "../media/Jobs.ts"
import { Media } from "../media/Media.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import "./contracts.ts"

export { Gate, Images, Jobs, Media }
export { MediaRequest, quoteOf, requestOf } from "../media/Model.ts"
export type { MediaModel, Quote } from "../media/Model.ts"
export { ImageRequest } from "../images/Image.ts"
export { ImageProviders } from "../images/Settings.ts"
export { MediaModels, MediaModelSetting } from "../media/Settings.ts"
export { ImagePatience } from "../images/Images.ts"
export * from "../images/Problems.ts"
export * from "../media/Problems.ts"
export { Upstreams } from "../upstream/Upstreams.ts"

/** Jobs and both routes to them behind the gate; wants a database and the upstreams. */
export const layer = Layer.mergeAll(Media.layer, Images.layer).pipe(
  Layer.provideMerge(Jobs.layer),
  Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer))
)

/** The loops of `layer`: open jobs are looked after though nobody asks, and what ended programs left is released. */
export const layerJobs = Layer.mergeAll(Gate.layerJobs, Jobs.layerJobs)
