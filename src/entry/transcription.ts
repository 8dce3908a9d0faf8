/** `tollgate/transcription`: audio to text, admitted and charged. */
import { Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { Transcription } from "../transcription/Transcription.ts"
import "./contracts.ts"

export { Gate, Transcription }
export type { Audio } from "../transcription/Audio.ts"
export * from "../transcription/Problems.ts"
export { TranscriptionModel, TranscriptionProvider, TranscriptionProviders } from "../transcription/Settings.ts"
export { UnknownModel, UnknownProvider } from "../upstream/Provider.ts"
export * from "../upstream/Problems.ts"
export { Upstreams } from "../upstream/Upstreams.ts"

/** Transcriptions behind the gate; wants a database, the providers and the upstreams. */
export const layer = Transcription.layer.pipe(Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer)))
