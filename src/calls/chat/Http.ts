import { Clock, Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { callable } from "../../http/lanes/Caller.ts"
import { group, raw } from "../../http/lanes/Raw.ts"
import { toDecimal } from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { detailNames } from "../../kernel/TokenDetails.ts"
import type { TokenDetail } from "../../kernel/TokenDetails.ts"
import { ChatApi } from "./Api.ts"
import type { ModelEntry } from "./Api.ts"
import { Chat } from "./Chat.ts"
import type { ChatContract } from "./Chat.ts"
import type { Reach } from "../engine/Engine.ts"
import type { Extra } from "../prompts/Extras.ts"
import { routes } from "../engine/Face.ts"
import { findModel, Models } from "../prompts/Model.ts"
import type { Catalogue, DetailPrices, LongContext, Model } from "../prompts/Model.ts"
import { ModelNotFound } from "../prompts/Problems.ts"

export const ChatHttp = group(
  contract.add(ChatApi),
  "chat",
  Effect.fnUntraced(function* (handlers) {
    const chat = yield* Chat
    const route = yield* routes(chat.least)
    const catalogue = yield* Models
    const all = listed(catalogue, chat.reach, Math.floor((yield* Clock.currentTimeMillis) / 1_000))
    const rows = callable(all, ({ id }) => findModel(catalogue, id)?.id ?? id)
    const rowOf = (id: string) =>
      Effect.flatMap(rows, (found) => {
        const row = found.find((one) => one.id === id)
        return row === undefined ? new ModelNotFound() : Effect.succeed(row)
      })
    return handlers
      .handleRaw(
        "chat",
        raw(route("chat/completions", { protocol: "chat", complete: chat.complete, stream: chat.stream }))
      )
      .handleRaw(
        "completion",
        raw(route("completions", { protocol: "text", complete: chat.completeText, stream: chat.streamText }))
      )
      .handle("models", () => Effect.map(rows, (data) => ({ object: "list" as const, data })))
      .handle("model", ({ path }) => rowOf(path.id))
      .handle("modelBelow", ({ path }) => rowOf(path["*"]))
  })
)

const none: ReadonlyMap<string, string> = new Map()

/** Lists `auto` (if configured), all models and their aliases. A model without a date gets `now`. */
const listed = (
  { aliases = none, auto, models }: Catalogue,
  reach: ChatContract["reach"],
  now: number
): ReadonlyArray<ModelEntry> => {
  const ofModels = models.map((model) => rowFor(model, reach(model.id), now))
  const rows = [
    ...ofModels,
    ...[...aliases].flatMap(([alias, model]) =>
      ofModels.filter(({ id }) => id === model).map((row): ModelEntry => ({ ...row, id: alias }))
    )
  ]
  const chosen = rows.find(({ id }) => id === auto)
  if (chosen === undefined) return rows
  const { extras: _, ...row } = chosen
  const byAuto = {
    ...row,
    id: "auto",
    name: "Auto",
    description: "The service chooses the model. The model determines the price.",
    pricing: { prompt: "-1", completion: "-1", request: "-1" }
  }
  return [byAuto, ...rows]
}

const rowFor = (model: Model, { native_protocols, protocols }: Reach, now: number): ModelEntry => ({
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
    request: toDecimal(model.request_price),
    ...detailsFor(model.detail_prices),
    ...(model.long_context !== undefined && { long_context: model.long_context.map(longContextFor) })
  },
  protocols,
  native_protocols,
  ...(model.extras.length > 0 && { extras: model.extras.map(extraFor) })
})

/** Clients' names for the prices of separately billed tokens. */
const detailFields = {
  cached_audio_tokens: "input_audio_cache_read",
  cached_tokens: "input_cache_read",
  cache_write_tokens: "input_cache_write",
  cache_write_1h_tokens: "input_cache_write_1h",
  prompt_audio_tokens: "audio",
  prompt_image_tokens: "image",
  reasoning_tokens: "internal_reasoning",
  completion_audio_tokens: "audio_output",
  completion_image_tokens: "image_output"
} as const satisfies { readonly [Name in TokenDetail]: keyof ModelEntry["pricing"] }

const detailsFor = (prices: DetailPrices = {}) =>
  Object.fromEntries(
    detailNames.flatMap((name) => {
      const price = prices[name]
      return price === undefined ? [] : [[detailFields[name], toDecimal(price)]]
    })
  )

const longContextFor = (tier: LongContext) => ({
  above_prompt_tokens: tier.above_prompt_tokens,
  ...(tier.prompt_price !== undefined && { prompt: toDecimal(tier.prompt_price) }),
  ...(tier.completion_price !== undefined && { completion: toDecimal(tier.completion_price) }),
  ...detailsFor(tier.detail_prices)
})

const extraFor = ({ field, price_factor, request_price, values }: Extra) => ({
  field,
  ...(values !== undefined && { values }),
  price_factor: toDecimal((price_factor * 10n ** 12n) as UnitPrice),
  request: toDecimal(request_price)
})
