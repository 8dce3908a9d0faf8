/** Images as one value. */
import { Layer } from "effect"
import { Jobs } from "../media/Jobs.ts"
import { ImagesHttp } from "./Http.ts"
import { Images } from "./Images.ts"
import * as tool from "./Settings.ts"

export const capability = { handlers: ImagesHttp, layer: Layer.provideMerge(Images.layer, Jobs.layer), tool }
