/** The capability for chat, Messages and Responses. They share one catalogue of models. */
import { Effect, Layer } from "effect"
import * as settings from "../engine/Settings.ts"
import { MessagesHttp } from "../messages/Http.ts"
import { Messages } from "../messages/Messages.ts"
import { ResponsesHttp } from "../responses/Http.ts"
import { Responses } from "../responses/Responses.ts"
import { Chat } from "./Chat.ts"
import { ChatHttp } from "./Http.ts"
import { Models } from "../prompts/Model.ts"

export const capability = {
  handlers: Layer.mergeAll(ChatHttp, MessagesHttp, ResponsesHttp),
  layer: Layer.mergeAll(Chat.layer, Messages.layer, Responses.layer),
  names: Effect.map(Models, ({ models }) => models.map(({ id }) => id)),
  settings
}
