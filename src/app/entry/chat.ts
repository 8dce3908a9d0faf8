/** `tollgate/chat`: metered model calls in every client protocol (chat and text completions, messages, responses), streamed or not. */
import { Layer } from "effect"
import { Chat } from "../../calls/chat/Chat.ts"
import { Messages } from "../../calls/messages/Messages.ts"
import { Responses } from "../../calls/responses/Responses.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Chat, Messages, Responses }
export type { ChatCall, TextCall } from "../../calls/chat/Chat.ts"
export type { Completed, Reach, Streamed } from "../../calls/engine/Engine.ts"
export { findModel, Models } from "../../calls/prompts/Model.ts"
export type { Catalogue, Model, ModelRoute } from "../../calls/prompts/Model.ts"
export * from "../../calls/prompts/Problems.ts"
export { ChatRequest, CompletionRequest } from "../../calls/prompts/Prompt.ts"
export type { ChatPrompt, TextPrompt } from "../../calls/prompts/Prompt.ts"
export type { Counted, CountTokensCall, MessageCall } from "../../calls/messages/Messages.ts"
export { CountTokensRequest, MessagesRequest } from "../../calls/dialects/messages/Prompt.ts"
export type { CountTokensPrompt, MessagesPrompt } from "../../calls/dialects/messages/Prompt.ts"
export type { ResponseCall } from "../../calls/responses/Responses.ts"
export { ResponsesRequest } from "../../calls/dialects/responses/Prompt.ts"
export type { ResponsesPrompt } from "../../calls/dialects/responses/Prompt.ts"
export { fields as settings, layer as layerSettings } from "../../calls/engine/Settings.ts"
export { UsdPer } from "../../kernel/Price.ts"
export { Upstreams } from "../../upstream/models/Upstreams.ts"
export * from "../../upstream/wire/Problems.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** Every protocol, with admission. Requires a database, `Payers`, `Models` and `Upstreams`. */
export const layer = Layer.mergeAll(Chat.layer, Messages.layer, Responses.layer).pipe(Layer.provideMerge(layerGate))

export { layerJobs } from "./gate.ts"
