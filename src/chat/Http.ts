import { Clock, Effect } from "effect"
import { Api } from "../Api.ts"
import { group, raw } from "../http/Raw.ts"
import { toDecimal } from "../kernel/Price.ts"
import type { UnitPrice } from "../kernel/Price.ts"
import type { ModelEntry } from "./Api.ts"
import { Chat } from "./Chat.ts"
import type { Extra } from "./Extras.ts"
import { Models } from "./Model.ts"
import type { Catalogue, Model } from "./Model.ts"
import { ModelNotFound } from "./Problems.ts"

export const ChatHttp = group(
  Api,
  "chat",
  Effect.fnUntraced(function* (handlers) {
    const chat = yield* Chat
    const data = listed(yield* Models, Math.floor((yield* Clock.currentTimeMillis) / 1_000))
    const rows = new Map(data.map((row) => [row.id, row]))
    const rowOf = (id: string) => {
      const row = rows.get(id)
      return row === undefined ? new ModelNotFound() : Effect.succeed(row)
    }
    return handlers
      .handleRaw("chat", raw(chat.chat))
      .handleRaw("completion", raw(chat.completion))
      .handle("models", () => Effect.succeed({ object: "list" as const, data }))
      .handle("model", ({ path }) => rowOf(path.id))
      .handle("modelBelow", ({ path }) => rowOf(path["*"]))
  })
)

/** The rows of all models; those of which nobody says when they were made are as old as the service. */
const listed = ({ auto, models }: Catalogue, now: number): ReadonlyArray<ModelEntry> => {
  const rows = models.map((model) => rowFor(model, now))
  const chosen = rows.find(({ id }) => id === auto)
  if (chosen === undefined) return rows
  const { extras: _, ...row } = chosen
  const byAuto = {
    ...row,
    id: "auto",
    name: "Auto",
    description: "The model that the service chooses; its price is that model's.",
    pricing: { prompt: "-1", completion: "-1", request: "-1" }
  }
  return [byAuto, ...rows]
}

const rowFor = (model: Model, now: number): ModelEntry => ({
  id: model.id,
  object: "model",
  created: model.created ?? now,
  owned_by: model.owned_by,
  name: model.name,
  description: model.description,
  context_length: model.context_length,
  architecture: { input_modalities: model.input_modalities, output_modalities: model.output_modalities },
  top_provider: { context_length: model.context_length, max_completion_tokens: model.output_tokens_max },
  pricing: {
    prompt: toDecimal(model.prompt_price),
    completion: toDecimal(model.completion_price),
    request: toDecimal(model.request_price)
  },
  ...(model.extras.length > 0 && { extras: model.extras.map(extraFor) })
})

const extraFor = ({ field, price_factor, request_price, values }: Extra) => ({
  field,
  ...(values !== undefined && { values }),
  price_factor: toDecimal((price_factor * 10n ** 12n) as UnitPrice),
  request: toDecimal(request_price)
})
