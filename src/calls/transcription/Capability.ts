/** The transcription capability. */
import { Effect, Layer } from "effect"
import { TranscriptionHttp, TranscriptionModelsHttp } from "./Http.ts"
import * as tool from "./Settings.ts"
import { Transcription } from "./Transcription.ts"

export const capability = {
  handlers: Layer.merge(TranscriptionHttp, TranscriptionModelsHttp),
  layer: Transcription.layer,
  names: Effect.map(tool.TranscriptionProviders, (list) => list.flatMap(({ models }) => models.map(({ id }) => id))),
  tool
}
