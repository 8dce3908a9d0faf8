/** `tollgate/speech`: text to speech, admitted and charged. */
import { Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { Speech } from "../speech/Speech.ts"
import "./contracts.ts"

export { Gate, Speech }
export type { SpeechRequest } from "../speech/Request.ts"
export { SpeechModel, SpeechProvider, SpeechProviders } from "../speech/Settings.ts"
export { UnknownModel, UnknownProvider } from "../upstream/Provider.ts"
export * from "../upstream/Problems.ts"
export { Upstreams } from "../upstream/Upstreams.ts"

/** Speech behind the gate; wants a database, the providers and the upstreams. */
export const layer = Speech.layer.pipe(Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer)))
