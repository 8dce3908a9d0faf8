/** `tollgate/media`: images and videos by quote, made by a vendor in its own time, charged once. */
import { Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import { Images } from "../images/Images.ts"
import { Jobs } from "../media/Jobs.ts"
import { Medias } from "../media/Medias.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import "./contracts.ts"

export { Gate, Images, Jobs, Medias }
export { MediaModels, quoteOf } from "../media/Media.ts"
export type { MediaModel, Quote } from "../media/Media.ts"
export { ImageProviders } from "../images/Image.ts"
export * from "../media/Problems.ts"
export { Upstreams } from "../upstream/Upstreams.ts"

/** Jobs and both routes to them behind the gate; wants a database and the upstreams. */
export const layer = Layer.mergeAll(Medias.layer, Images.layer).pipe(
  Layer.provideMerge(Jobs.layer),
  Layer.provideMerge(Layer.mergeAll(Gate.layer, Idempotency.layer, PriceVersions.layer))
)
