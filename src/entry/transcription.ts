/** `tollgate/transcription`: audio to text, admitted and charged. */
import { Layer } from "effect"
import { Transcription } from "../transcription/Transcription.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Transcription }
export type { Audio } from "../transcription/Audio.ts"
export * from "../transcription/Problems.ts"
export { TranscriptionModel, TranscriptionProvider, TranscriptionProviders } from "../transcription/Settings.ts"
export { UnknownModel, UnknownProvider } from "../upstream/Provider.ts"
export { fields as settings, layer as layerSettings } from "../transcription/Settings.ts"
export { Upstreams } from "../upstream/Upstreams.ts"
export * from "../upstream/Problems.ts"
export { Payers } from "../gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../gate/Problems.ts"
export { BooksUnavailable } from "../ledger/Problems.ts"

/** Transcriptions behind the gate. Needs a database, `Payers`, `TranscriptionProviders` and `Upstreams`. */
export const layer = Transcription.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
