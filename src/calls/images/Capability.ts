/** The images capability. */
import { Effect, Layer } from "effect"
import { Jobs } from "../media/Jobs.ts"
import { ImagesHttp } from "./Http.ts"
import { Images } from "./Images.ts"
import * as tool from "./Settings.ts"

export const capability = {
  handlers: ImagesHttp,
  layer: Layer.provideMerge(Images.layer, Jobs.layer),
  names: Effect.map(tool.ImageProviders, (list) => list.flatMap(endpointsOf)),
  tool
}

/** Returns a provider's endpoints. In usage records, the model is the vendor's endpoint. */
const endpointsOf = ({
  edits,
  endpoint,
  image_to_image_endpoint: other
}: tool.ImageProvider): ReadonlyArray<string> => [
  endpoint,
  ...(other === undefined ? [] : [other]),
  ...(edits === undefined ? [] : [edits.endpoint])
]
