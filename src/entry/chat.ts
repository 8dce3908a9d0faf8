/** `tollgate/chat`: chat and text completions, admitted and charged. */
import { Layer } from "effect"
import { Chat } from "../chat/Chat.ts"
import { Gate } from "../gate/Gate.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import "./contracts.ts"

export { Chat, Gate }
export type { ChatCall, Completed, Streamed, TextCall } from "../chat/Chat.ts"
export { Models } from "../chat/Model.ts"
export type { Catalogue, Model } from "../chat/Model.ts"
export { UnknownChatModel } from "../chat/Problems.ts"
export { ChatRequest, CompletionRequest } from "../chat/Prompt.ts"
export type { ChatPrompt, TextPrompt } from "../chat/Prompt.ts"
export { UsdPer } from "../kernel/Price.ts"
export * from "../upstream/Problems.ts"
export { Upstreams } from "../upstream/Upstreams.ts"

/** Chat behind the gate; wants a database, who pays, the models and the upstreams. */
export const layer = Chat.layer.pipe(Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer)))
