import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { raw } from "../http/Raw.ts"
import { toDecimal } from "../kernel/Price.ts"
import { Chat } from "./Chat.ts"
import { Models } from "./Model.ts"
import type { Catalogue } from "./Model.ts"

export const ChatHttp = HttpApiBuilder.group(
  Api,
  "chat",
  Effect.fnUntraced(function* (handlers) {
    const chat = yield* Chat
    const models = listed(yield* Models)
    return handlers
      .handleRaw("chat", raw(chat.chat))
      .handleRaw("completion", raw(chat.completion))
      .handle("models", () => Effect.succeed(models))
  })
)

const listed = ({ auto, models }: Catalogue) => ({
  object: "list" as const,
  data: [
    ...(auto === undefined
      ? []
      : [
          {
            id: "auto",
            object: "model" as const,
            name: "Auto",
            description: "The model that the service chooses; its price is that model's.",
            context_length: models.find((model) => model.id === auto)?.context_length ?? 0,
            pricing: { prompt: "-1", completion: "-1" }
          }
        ]),
    ...models.map((model) => ({
      id: model.id,
      object: "model" as const,
      name: model.name,
      description: model.description,
      context_length: model.context_length,
      pricing: { prompt: toDecimal(model.prompt_price), completion: toDecimal(model.completion_price) }
    }))
  ]
})
