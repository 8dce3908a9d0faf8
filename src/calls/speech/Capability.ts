/** Speech as one value. */
import { Layer } from "effect"
import { SpeechHttp, SpeechModelsHttp } from "./Http.ts"
import * as tool from "./Settings.ts"
import { Speech } from "./Speech.ts"

export const capability = { handlers: Layer.merge(SpeechHttp, SpeechModelsHttp), layer: Speech.layer, tool }
