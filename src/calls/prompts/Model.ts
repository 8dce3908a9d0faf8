/**
 * A model that the deployment serves, at which price and from where.
 *
 * Where the specification is silent:
 * - The limit of an answer goes upstream under one name, `limit_field` of the model or of one of its upstreams. It is
 *   `max_completion_tokens` unless the configuration says otherwise: OpenAI refuses the older name for its newer models. An upstream that
 *   ignores the name that it is sent is charged up to the limit, and the log says so.
 */
import { Context } from "effect"
import type { UnitPrice } from "../../kernel/Price.ts"
import { completionDetails, detailNames, promptDetails } from "../../kernel/TokenDetails.ts"
import type { TokenDetail } from "../../kernel/TokenDetails.ts"
import type { PriceLine, Quantity } from "../../books/prices/Lines.ts"
import type { Routing } from "../../upstream/routing/Order.ts"
import type { Extra } from "./Extras.ts"

/** The name under which an upstream takes the limit of an answer; `none`: it takes no limit. */
export type LimitField = "max_completion_tokens" | "max_tokens" | "none"

export interface ModelRoute {
  /** The name of the upstream in the configuration. */
  readonly upstream: string
  /** The upstream's name of the model. */
  readonly model: string
  readonly limit_field: LimitField
  /** The vendor's price, for the operator's view of costs and routing by cost: no call is charged by it. */
  readonly cost?: VendorCost | undefined
  /** Its share of the calls where they are routed by weights; 1 unless it says so. */
  readonly weight?: number | undefined
}

/** How often a call that no upstream served is repeated. */
export interface Retries {
  readonly max: number
  /** A repetition does not begin later than this after the call. */
  readonly within_ms: number
}

/** Tokens read from a cache or billed apart otherwise count like any other token. */
export interface VendorCost {
  readonly prompt_price: UnitPrice
  readonly completion_price: UnitPrice
  /** For each call, beside its tokens. */
  readonly request_price: UnitPrice
}

export type DetailPrices = { readonly [Name in TokenDetail]?: UnitPrice }

/** Prices of all tokens of a call with a longer prompt than this; a missing price does not change. */
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
  /** Seconds since 1970; when the service started, if the configuration does not say it. */
  readonly created: number | undefined
  readonly input_modalities: ReadonlyArray<string>
  readonly output_modalities: ReadonlyArray<string>
  /** Tokens that prompt and answer may have together. */
  readonly context_length: number
  /** The longest answer it gives, in tokens. */
  readonly output_tokens_max: number
  /** The most tokens that an image in a prompt counts. */
  readonly attachment_tokens_max: number
  /** How many tokens the upstream adds to any prompt at the most: its template. */
  readonly added_tokens_max: number
  /** How many tokens the upstream adds to a prompt with tools at the most: its own words about tools. */
  readonly tool_tokens_max: number
  readonly prompt_price: UnitPrice
  readonly completion_price: UnitPrice
  /** For each call, beside its tokens. */
  readonly request_price: UnitPrice
  /** Prices of tokens of these kinds; tokens of another kind cost what the kind that contains them costs. */
  readonly detail_prices?: DetailPrices | undefined
  /** Other prices for longer prompts. */
  readonly long_context?: ReadonlyArray<LongContext> | undefined
  /** The factors that its prices were multiplied by. */
  readonly factors?: ReadonlyArray<string> | undefined
  /** Extras that it serves at prices of their own. */
  readonly extras: ReadonlyArray<Extra>
  /** Whether requests may name files, containers and spoken answers by the ids that the vendor gave them; their owner is not checked. */
  readonly vendor_files?: boolean | undefined
  /** Tried in this order, or as `routing` says, until one begins to answer. */
  readonly routes: ReadonlyArray<ModelRoute>
  readonly routing?: Routing | undefined
  readonly retries?: Retries | undefined
  /** Models that answer if all upstreams of this one fail. */
  readonly fallbacks?: ReadonlyArray<string> | undefined
}

const known = new WeakMap<Model, ReadonlyArray<PriceLine>>()

/** The model's price as lines, the same each time. */
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

/** The most that a token can cost. */
export interface Dearest {
  readonly prompt: UnitPrice
  readonly completion: UnitPrice
}

const ofPrompt: ReadonlySet<Quantity> = new Set(["prompt_tokens", ...promptDetails])
const ofAttachments: ReadonlySet<Quantity> = new Set([
  "cached_audio_tokens",
  "prompt_audio_tokens",
  "prompt_image_tokens"
])
const ofCompletion: ReadonlySet<Quantity> = new Set(["completion_tokens", ...completionDetails])

/**
 * The price of writing to a cache for an hour: a price of its own; the price of any prompt token, if no write has a price; or `unknown`, if
 * writes have a price (for all prompts or for longer ones) and those for an hour have none.
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

/** The lines of writes to a cache beside which there is none for an hour. */
export const withoutHour = (lines: ReadonlyArray<PriceLine>): ReadonlyArray<PriceLine> => {
  const hours = lines.filter(({ quantity }) => quantity === "cache_write_1h_tokens")
  return lines.filter(
    ({ above, quantity }) => quantity === "cache_write_tokens" && hours.every((hour) => hour.above !== above)
  )
}

/** The kinds of prompt tokens. */
export interface Kinds {
  /** Audio or images. */
  readonly attachments: boolean
  /** Written to a cache for an hour. */
  readonly hour: boolean
}

/** The dearest lines that can count for a prompt of up to so many tokens. */
export const dearestOf = (model: Model, prompt_tokens: number, { attachments, hour }: Kinds): Dearest => {
  if (model.detail_prices === undefined && model.long_context === undefined)
    return { prompt: model.prompt_price, completion: model.completion_price }
  let { completion_price: completion, prompt_price: prompt } = model
  for (const { above = -1, price, quantity } of linesOf(model)) {
    if (above >= prompt_tokens) continue
    if (ofCompletion.has(quantity) && price > completion) completion = price
    if (!hour && quantity === "cache_write_1h_tokens") continue
    if (ofPrompt.has(quantity) && price > prompt && (attachments || !ofAttachments.has(quantity))) prompt = price
  }
  return { prompt, completion }
}

/** The least that a token of an answer costs. */
export const leastOf = (model: Model): UnitPrice =>
  linesOf(model)
    .filter(({ quantity }) => ofCompletion.has(quantity))
    .reduce((least, { price }) => (price < least ? price : least), model.completion_price)

/** Whether every upstream of the model keeps to a limit of the answer. */
export const takesLimit = ({ routes }: Model): boolean => routes.every(({ limit_field }) => limit_field !== "none")

export interface Catalogue {
  readonly models: ReadonlyArray<Model>
  /** The model that stands behind `auto`, if the deployment has one. */
  readonly auto: string | undefined
  /** Other names of models: the id of each, by its alias. */
  readonly aliases?: ReadonlyMap<string, string> | undefined
}

export class Models extends Context.Tag("tollgate/chat/Models")<Models, Catalogue>() {}

/** The model that a caller names, by its id, an alias or `auto`. */
export const findModel = ({ aliases, auto, models }: Catalogue, name: string): Model | undefined => {
  const id = name === "auto" ? auto : (aliases?.get(name) ?? name)
  return models.find((model) => model.id === id)
}
