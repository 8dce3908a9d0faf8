/**
 * The deployment's models, with their prices and upstreams.
 *
 * Where the specification is silent:
 * - The completion limit is sent in one field: the `limit_field` of the upstream or of the model. It defaults to `max_completion_tokens`, because
 *   OpenAI rejects the older field for newer models. If an upstream ignores the field, the limit still bounds the charge, and the service logs a
 *   warning.
 */
import { Context } from "effect"
import type { UnitPrice } from "../../kernel/Price.ts"
import { completionDetails, detailNames, promptDetails } from "../../kernel/TokenDetails.ts"
import type { TokenDetail } from "../../kernel/TokenDetails.ts"
import type { PriceLine, Quantity } from "../../books/prices/Lines.ts"
import type { Routing } from "../../upstream/routing/Order.ts"
import type { Extra } from "./Extras.ts"

/** The upstream's field for the completion limit, or `none` if the upstream accepts no limit. */
export type LimitField = "max_completion_tokens" | "max_tokens" | "none"

export interface ModelRoute {
  /** The upstream's configured name. */
  readonly upstream: string
  /** The model's name at the upstream. */
  readonly model: string
  readonly limit_field: LimitField
  /** The vendor's price, for routing by cost and for the operator's cost view. It does not affect the callers' charges. */
  readonly cost?: VendorCost | undefined
  /** The upstream's relative share of calls routed by weights; 1 by default. */
  readonly weight?: number | undefined
}

/** Further rounds of attempts if no upstream served the call. */
export interface Retries {
  readonly max: number
  /** The maximum time from a call's start to the start of its last round, in milliseconds. */
  readonly within_ms: number
}

/** A vendor's price, without separate prices for cached or other tokens. */
export interface VendorCost {
  readonly prompt_price: UnitPrice
  readonly completion_price: UnitPrice
  /** The price per call, in addition to the tokens. */
  readonly request_price: UnitPrice
}

export type DetailPrices = { readonly [Name in TokenDetail]?: UnitPrice }

/** Prices of calls with longer prompts. They apply to all tokens of the call. A missing price means the base price. */
export interface LongContext {
  readonly above_prompt_tokens: number
  readonly prompt_price?: UnitPrice | undefined
  readonly completion_price?: UnitPrice | undefined
  readonly detail_prices?: DetailPrices | undefined
}

export interface Model {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly owned_by: string
  /** When the model was created, as Unix time in seconds, if configured. */
  readonly created: number | undefined
  readonly input_modalities: ReadonlyArray<string>
  readonly output_modalities: ReadonlyArray<string>
  /** The maximum number of tokens in the prompt and the completion together. */
  readonly context_length: number
  readonly output_tokens_max: number
  /** The maximum number of tokens that an attachment adds to a prompt. */
  readonly attachment_tokens_max: number
  /** The maximum number of tokens that the upstream's template adds to a prompt. */
  readonly added_tokens_max: number
  /** The maximum number of tokens that the upstream adds to a prompt with tools. */
  readonly tool_tokens_max: number
  readonly prompt_price: UnitPrice
  readonly completion_price: UnitPrice
  /** The price per call, in addition to the tokens. */
  readonly request_price: UnitPrice
  /** Prices of separately billed tokens. A missing price means the ordinary price. */
  readonly detail_prices?: DetailPrices | undefined
  readonly long_context?: ReadonlyArray<LongContext> | undefined
  /** The price factors that the model's prices already include. */
  readonly factors?: ReadonlyArray<string> | undefined
  /** The request fields that have a price. */
  readonly extras: ReadonlyArray<Extra>
  /** Whether requests may refer to files, containers and audio outputs by the vendor's ids. The service does not check their owner. */
  readonly vendor_files?: boolean | undefined
  /** The routes, in the order they are tried unless `routing` reorders them. */
  readonly routes: ReadonlyArray<ModelRoute>
  readonly routing?: Routing | undefined
  readonly retries?: Retries | undefined
  /** Models to try if all upstreams fail. */
  readonly fallbacks?: ReadonlyArray<string> | undefined
}

const known = new WeakMap<Model, ReadonlyArray<PriceLine>>()

/** Returns the model's price lines, from a cache. */
export const linesOf = (model: Model): ReadonlyArray<PriceLine> => {
  let lines = known.get(model)
  if (lines === undefined) known.set(model, (lines = makeLines(model)))
  return lines
}

const makeLines = (model: Model): ReadonlyArray<PriceLine> => {
  const { completion_price, detail_prices, prompt_price, request_price } = model
  const requests = { quantity: "requests", unit: "request", price: request_price } as const
  const { factors } = model
  const lines: ReadonlyArray<PriceLine> = [
    ...tokenLines({ prompt_price, completion_price, detail_prices }),
    ...(request_price === 0n ? [] : [requests]),
    ...(model.long_context ?? []).flatMap((tier) => tokenLines(tier, tier.above_prompt_tokens))
  ]
  return factors === undefined ? lines : lines.map((line) => ({ ...line, factors }))
}

const tokenLines = (
  { completion_price, detail_prices, prompt_price }: Omit<LongContext, "above_prompt_tokens">,
  above?: number
): ReadonlyArray<PriceLine> => {
  const priceOf = (quantity: Quantity): UnitPrice | undefined =>
    quantity === "prompt_tokens"
      ? prompt_price
      : quantity === "completion_tokens"
        ? completion_price
        : detail_prices?.[quantity as TokenDetail]
  return (["prompt_tokens", "completion_tokens", ...detailNames] as const).flatMap((quantity) => {
    const price = priceOf(quantity)
    return price === undefined ? [] : [{ quantity, unit: "token", price, ...(above !== undefined && { above }) }]
  })
}

/** The maximum token prices. */
export interface MaxPrices {
  readonly prompt: UnitPrice
  readonly completion: UnitPrice
}

const promptQuantities: ReadonlySet<Quantity> = new Set(["prompt_tokens", ...promptDetails])
const attachmentQuantities: ReadonlySet<Quantity> = new Set([
  "cached_audio_tokens",
  "prompt_audio_tokens",
  "prompt_image_tokens"
])
const completionQuantities: ReadonlySet<Quantity> = new Set(["completion_tokens", ...completionDetails])

/**
 * The pricing of one-hour cache writes. `own`: these writes have a separate price. `prompt`: no cache write has a price, so the prompt price applies.
 * `unknown`: other writes have a price (for all prompts or for longer ones), but one-hour writes have none.
 */
export type HourPrice = "own" | "prompt" | "unknown"

const hourPrices = new WeakMap<Model, HourPrice>()

export const hourPriceOf = (model: Model): HourPrice => {
  if (model.detail_prices === undefined && model.long_context === undefined) return "prompt"
  let price = hourPrices.get(model)
  if (price === undefined) hourPrices.set(model, (price = findHourPrice(linesOf(model))))
  return price
}

const findHourPrice = (lines: ReadonlyArray<PriceLine>): HourPrice => {
  if (withoutHour(lines).length > 0) return "unknown"
  return lines.some(({ quantity }) => quantity === "cache_write_1h_tokens") ? "own" : "prompt"
}

/** Returns the cache write lines without a matching one-hour line for their prompt length. */
export const withoutHour = (lines: ReadonlyArray<PriceLine>): ReadonlyArray<PriceLine> => {
  const hours = lines.filter(({ quantity }) => quantity === "cache_write_1h_tokens")
  return lines.filter(
    ({ above, quantity }) => quantity === "cache_write_tokens" && hours.every((hour) => hour.above !== above)
  )
}

/** The kinds of separately billed tokens that a prompt can contain. */
export interface Kinds {
  /** Whether the prompt can contain audio or images. */
  readonly attachments: boolean
  /** Whether the prompt may be cached for an hour. */
  readonly hour: boolean
}

/** Returns the maximum prices that can apply to a prompt of up to this many tokens. */
export const maxPricesOf = (model: Model, prompt_tokens: number, { attachments, hour }: Kinds): MaxPrices => {
  if (model.detail_prices === undefined && model.long_context === undefined)
    return { prompt: model.prompt_price, completion: model.completion_price }
  let { completion_price: completion, prompt_price: prompt } = model
  for (const { above = -1, price, quantity } of linesOf(model)) {
    if (above >= prompt_tokens) continue
    if (completionQuantities.has(quantity) && price > completion) completion = price
    if (!hour && quantity === "cache_write_1h_tokens") continue
    if (promptQuantities.has(quantity) && price > prompt && (attachments || !attachmentQuantities.has(quantity)))
      prompt = price
  }
  return { prompt, completion }
}

/** Returns the minimum price of a completion token. */
export const minCompletionPriceOf = (model: Model): UnitPrice =>
  linesOf(model)
    .filter(({ quantity }) => completionQuantities.has(quantity))
    .reduce((least, { price }) => (price < least ? price : least), model.completion_price)

/** Returns whether all of the model's upstreams accept a completion limit. */
export const acceptsLimit = ({ routes }: Model): boolean => routes.every(({ limit_field }) => limit_field !== "none")

export interface Catalogue {
  readonly models: ReadonlyArray<Model>
  /** The model that `auto` selects, if the deployment has one. */
  readonly auto: string | undefined
  /** Model ids, by alias. */
  readonly aliases?: ReadonlyMap<string, string> | undefined
}

export class Models extends Context.Tag("tollgate/chat/Models")<Models, Catalogue>() {}

/** Finds a model by its id, an alias or `auto`. */
export const findModel = ({ aliases, auto, models }: Catalogue, name: string): Model | undefined => {
  const id = name === "auto" ? auto : (aliases?.get(name) ?? name)
  return models.find((model) => model.id === id)
}
