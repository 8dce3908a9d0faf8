/** `tollgate/speech`: text to speech, admitted and charged. */
import { Layer } from "effect"
import { Speech } from "../speech/Speech.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Speech }
export { SpeechModel, SpeechProvider, SpeechProviders } from "../speech/Settings.ts"
export type { SpeechRequest } from "../speech/Request.ts"
export { UnknownModel, UnknownProvider } from "../upstream/Provider.ts"
export { fields as settings, layer as layerSettings } from "../speech/Settings.ts"
export { Upstreams } from "../upstream/Upstreams.ts"
export * from "../upstream/Problems.ts"
export { Payers } from "../gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../gate/Problems.ts"
export { BooksUnavailable } from "../ledger/Problems.ts"

/** Speech behind the gate. Needs a database, `Payers`, `SpeechProviders` and `Upstreams`. */
export const layer = Speech.layer.pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
