/** `tollgate/speech`: metered text to speech. */
import { Layer } from "effect"
import { Speech } from "../../calls/speech/Speech.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Speech }
export { SpeechModel, SpeechProvider, SpeechProviders } from "../../calls/speech/Settings.ts"
export type { SpeechRequest } from "../../calls/speech/Request.ts"
export { UnknownModel, UnknownProvider } from "../../upstream/models/Provider.ts"
export { fields as settings, layer as layerSettings } from "../../calls/speech/Settings.ts"
export { Upstreams } from "../../upstream/models/Upstreams.ts"
export * from "../../upstream/wire/Problems.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** Speech with admission. Requires a database, `Payers`, `SpeechProviders` and `Upstreams`. */
export const layer = Speech.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
