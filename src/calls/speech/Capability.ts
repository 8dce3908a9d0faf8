/** The speech capability. */
import { Effect, Layer } from "effect"
import { SpeechHttp, SpeechModelsHttp } from "./Http.ts"
import * as tool from "./Settings.ts"
import { Speech } from "./Speech.ts"

export const capability = {
  handlers: Layer.merge(SpeechHttp, SpeechModelsHttp),
  layer: Speech.layer,
  names: Effect.map(tool.SpeechProviders, (list) => list.flatMap(({ models }) => models.map(({ id }) => id))),
  tool
}
