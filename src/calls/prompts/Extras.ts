/**
 * Fields of a request that make a vendor bill otherwise than the model's price says. Each is refused unless the model's configuration names
 * it, with a price; every field that does not stand here passes.
 *
 * Where the specification is silent:
 * - `calls/prompts/Extras` has the fields that change what a vendor bills, each with the reason. A model's `extras` name those that it
 *   serves: a factor on its token prices, an amount for each call, or both, in bound and charge alike. `service_tier` passes as `auto` and
 *   `default`, which clients send; `store`, `metadata` and every unknown field pass unchanged.
 * - A field that differs from one that is read, or changes a bill, by capitals alone is refused: an upstream that is written in Go takes
 *   `Model` for `model`, and the last of both, so it could be asked for another model than the one that is charged.
 */
import { Either } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import type { DetailPrices, Model } from "./Model.ts"

/** A field that a model serves, and what a call with it costs. */
export interface Extra {
  readonly field: string
  /** The values, or kinds of tools, that are served; all where it names none. */
  readonly values: ReadonlyArray<string> | undefined
  /** In millionths: what prompt and answer cost is multiplied by it. */
  readonly price_factor: bigint
  /** Added for each call. */
  readonly request_price: UnitPrice
}

/** What a value requests beyond a plain request; nothing if it changes no bill. */
export type AsksFor = (value: unknown) => ReadonlyArray<string>

const nothing: ReadonlyArray<string> = []
const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

/** Anything but null, `false` and an empty list. */
export const anything: AsksFor = (value) =>
  value === null || value === false || (Array.isArray(value) && value.length === 0) ? nothing : [text(value)]

export const otherThan =
  (...plain: ReadonlyArray<string>): AsksFor =>
  (value) =>
    value === null || plain.includes(value as string) ? nothing : [text(value)]

/** Its type, in any case; none is `undefined`. */
const typesOf = (tool: unknown): ReadonlyArray<unknown> => {
  if (typeof tool !== "object" || tool === null) return [tool]
  const types = Object.entries(tool).flatMap(([name, value]) => (inAnyCase(name) === "type" ? [value] : []))
  return types.length === 0 ? [undefined] : types
}

/** Tools of other types than these, which the client runs. */
export const toolsOtherThan =
  (isClients: (type: unknown) => boolean): AsksFor =>
  (tools) =>
    Array.isArray(tools)
      ? tools.flatMap(typesOf).flatMap((type) => (type === null || isClients(type) ? nothing : [text(type)]))
      : anything(tools)

const modalities: AsksFor = (value) =>
  Array.isArray(value) ? value.flatMap((one) => otherThan("text")(one)) : anything(value)

export const otherModels = "it may be answered by another model, at another price"
export const searches = "the vendor searches the web, and bills it beside the tokens"
export const vendorTools = "the vendor runs tools of its own, and bills them beside the tokens"

export interface Rule {
  readonly asksFor: AsksFor
  readonly why: string
  /** No price can be put on it. */
  readonly never?: true
}

/** The fields of a protocol that make a vendor bill otherwise. */
export type Billed = ReadonlyMap<string, Rule>

/** Names of limits that the protocol does not know: a client that sends one relies on a limit that would not be kept. */
export const otherLimits = (own: string, others: ReadonlyArray<string>): ReadonlyArray<[string, Rule]> =>
  [...others, "max_new_tokens", "max_tokens_to_sample", "num_predict"].map((name) => [
    name,
    { asksFor: anything, why: `the limit of an answer is ${own}`, never: true }
  ])

/** Those of chat and text completions, and why each of them costs otherwise. */
export const billed: Billed = new Map<string, Rule>([
  ["models", { asksFor: anything, why: otherModels }],
  ["fallbacks", { asksFor: anything, why: otherModels }],
  ["route", { asksFor: anything, why: otherModels }],
  ["provider", { asksFor: anything, why: "it may be served by another provider, at another price" }],
  ["transforms", { asksFor: anything, why: "the prompt that is billed is another than the one that was sent" }],
  [
    "service_tier",
    { asksFor: otherThan("auto", "default", "standard", "on_demand"), why: "another tier has another price" }
  ],
  ["speed", { asksFor: otherThan("standard"), why: "another speed has another price" }],
  ["plugins", { asksFor: anything, why: vendorTools }],
  ["tools", { asksFor: toolsOtherThan((type) => type === "function" || type === "custom"), why: vendorTools }],
  ["mcp_servers", { asksFor: anything, why: vendorTools }],
  ["data_sources", { asksFor: anything, why: vendorTools }],
  ["web_search_options", { asksFor: anything, why: searches }],
  ["search_parameters", { asksFor: anything, why: searches }],
  ["enable_search", { asksFor: anything, why: searches }],
  ["modalities", { asksFor: modalities, why: "an answer that is not text has another price" }],
  // xAI: the vendor makes an answer all the same.
  ["deferred", { asksFor: anything, why: "an answer that is fetched later cannot be charged", never: true }],
  ["prediction", { asksFor: anything, why: "predicted tokens are billed beyond the limit of the answer" }],
  ...otherLimits("max_tokens or max_completion_tokens", ["max_output_tokens"])
])

/** The fields of these that a configuration may name. */
export const priceableOf = (billed: Billed): ReadonlyArray<string> =>
  [...billed].flatMap(([field, { never }]) => (never ? [] : [field]))

/** The extras of the request, or the reason for refusing it. Most ask for nothing. Headers are fields as those of the body. */
export const extrasOf = (
  model: Model,
  billed: Billed,
  body: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> | undefined
): Either.Either<ReadonlyArray<Extra>, InvalidRequest> => {
  const asked: Array<Extra> = []
  const problem = addTo(asked, model, billed, body) ?? (headers && addTo(asked, model, billed, headers))
  return problem === undefined ? Either.right(asked.length === 0 ? none : asked) : Either.left(problem)
}

/** Fields that bound, charge or answer a request, beside those that change a bill. */
const read: ReadonlySet<string> = new Set(
  (
    "model messages prompt input system instructions stream stream_options max_tokens max_completion_tokens max_output_tokens n best_of " +
    "store previous_response_id conversation dimensions encoding_format query documents top_n return_documents"
  ).split(" ")
)

/** Letters that have a smaller one in ASCII are among these. */
const capital = /[A-Z\u0080-\uffff]/

/** A name in lower case, for readers that ignore capitals. */
export const inAnyCase = (name: string): string => (capital.test(name) ? name.toUpperCase().toLowerCase() : name)

/** Why a field is refused that only looks like one of those. */
export const lookalike = (billed: Billed, field: string): InvalidRequest | undefined => {
  const name = inAnyCase(field)
  return name !== field && (read.has(name) || billed.has(name))
    ? InvalidRequest.of(field, `written as ${name}`)
    : undefined
}

const addTo = (
  asked: Array<Extra>,
  model: Model,
  billed: Billed,
  fields: Readonly<Record<string, unknown>>
): InvalidRequest | undefined => {
  for (const field in fields) {
    const rule = billed.get(field)
    if (rule === undefined) {
      const other = lookalike(billed, field)
      if (other !== undefined) return other
      continue
    }
    for (const value of rule.asksFor(fields[field])) {
      const extra = model.extras.find((one) => one.field === field && (one.values?.includes(value) ?? true))
      if (extra === undefined) return refused(field, rule)
      if (!asked.includes(extra)) asked.push(extra)
    }
  }
  return undefined
}

const none: ReadonlyArray<Extra> = []

const refused = (field: string, { never, why }: Rule): InvalidRequest => {
  const rule = never === true ? why : `this model does not serve what it asks for: ${why}`
  return InvalidRequest.of(field, rule)
}

const million = 1_000_000n

/** The model at the prices of a call that asks for these. */
export const withExtras = (model: Model, extras: ReadonlyArray<Extra>): Model => extras.reduce(withExtra, model)

const withExtra = (model: Model, { price_factor, request_price }: Extra): Model => {
  const times = (price: UnitPrice) => ((price * price_factor) / million) as UnitPrice
  const details = (prices: DetailPrices | undefined): DetailPrices | undefined =>
    prices && Object.fromEntries(Object.entries(prices).map(([name, price]) => [name, times(price)]))
  return {
    ...model,
    prompt_price: times(model.prompt_price),
    completion_price: times(model.completion_price),
    request_price: (model.request_price + request_price) as UnitPrice,
    detail_prices: details(model.detail_prices),
    long_context: model.long_context?.map((tier) => ({
      above_prompt_tokens: tier.above_prompt_tokens,
      prompt_price: tier.prompt_price && times(tier.prompt_price),
      completion_price: tier.completion_price && times(tier.completion_price),
      detail_prices: details(tier.detail_prices)
    }))
  }
}
