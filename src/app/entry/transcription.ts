/** `tollgate/transcription`: metered audio to text. */
import { Layer } from "effect"
import { Transcription } from "../../calls/transcription/Transcription.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Transcription }
export type { Audio } from "../../calls/transcription/Audio.ts"
export * from "../../calls/transcription/Problems.ts"
export {
  TranscriptionModel,
  TranscriptionProvider,
  TranscriptionProviders
} from "../../calls/transcription/Settings.ts"
export { UnknownModel, UnknownProvider } from "../../upstream/models/Provider.ts"
export { fields as settings, layer as layerSettings } from "../../calls/transcription/Settings.ts"
export { Upstreams } from "../../upstream/models/Upstreams.ts"
export * from "../../upstream/wire/Problems.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** Transcriptions with admission. Requires a database, `Payers`, `TranscriptionProviders` and `Upstreams`. */
export const layer = Transcription.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
