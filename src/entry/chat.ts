/**
 * `tollgate/chat`: answers of models in each protocol that clients speak (chat and text completions, messages, responses), whole or as a
 * stream of events, admitted and charged.
 */
import { Layer } from "effect"
import { Chat } from "../chat/Chat.ts"
import { Messages } from "../messages/Messages.ts"
import { Responses } from "../responses/Responses.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Chat, Messages, Responses }
export type { ChatCall, TextCall } from "../chat/Chat.ts"
export type { Completed, Reach, Streamed } from "../chat/Engine.ts"
export { findModel, Models } from "../chat/Model.ts"
export type { Catalogue, Model, ModelRoute } from "../chat/Model.ts"
export * from "../chat/Problems.ts"
export { ChatRequest, CompletionRequest } from "../chat/Prompt.ts"
export type { ChatPrompt, TextPrompt } from "../chat/Prompt.ts"
export type { Counted, CountTokensCall, MessageCall } from "../messages/Messages.ts"
export { CountTokensRequest, MessagesRequest } from "../messages/Prompt.ts"
export type { CountTokensPrompt, MessagesPrompt } from "../messages/Prompt.ts"
export type { ResponseCall } from "../responses/Responses.ts"
export { ResponsesRequest } from "../responses/Prompt.ts"
export type { ResponsesPrompt } from "../responses/Prompt.ts"
export { fields as settings, layer as layerSettings } from "../chat/Settings.ts"
export { UsdPer } from "../kernel/Price.ts"
export { Upstreams } from "../upstream/Upstreams.ts"
export * from "../upstream/Problems.ts"
export { Payers } from "../gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../gate/Problems.ts"
export { BooksUnavailable } from "../ledger/Problems.ts"

/** Every protocol behind the gate. Needs a database, `Payers`, `Models` and `Upstreams`. */
export const layer = Layer.mergeAll(Chat.layer, Messages.layer, Responses.layer).pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
