/**
 * Handles request fields that change the vendor's bill beyond the model's price. A request with such a field is rejected unless the model's
 * configuration has a price for it. All other fields are sent unchanged.
 *
 * Where the specification is silent:
 * - The maps `billed` list the fields that change a vendor's bill, each with the reason. A model's `extras` list the fields that it supports. Each
 *   has a factor on the token prices, an amount per call, or both, and these apply to the bound and to the charge. `service_tier` may be `auto` or
 *   `default`, because clients send these values. `store`, `metadata` and unknown fields are sent unchanged.
 * - A field is rejected if its name differs only in case from a field that the service reads or bills. An upstream written in Go reads `Model` as
 *   `model` and uses the last of the two, so it could serve a model other than the charged one.
 */
import { Either } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import type { DetailPrices, Model } from "./Model.ts"

/** A request field with a price. */
export interface Extra {
  readonly field: string
  /** The values or tool types to allow, or `undefined` to allow all. */
  readonly values: ReadonlyArray<string> | undefined
  /** The multiplier of the token prices, in millionths. */
  readonly price_factor: bigint
  /** The amount added to a call's price if it uses the field. */
  readonly request_price: UnitPrice
}

/** Returns the billed values or tool types that a field requests, or an empty array if the field does not change the bill. */
export type BilledValues = (value: unknown) => ReadonlyArray<string>

const nothing: ReadonlyArray<string> = []
const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

/** Requests any value except null, `false` and an empty array. */
export const anyValue: BilledValues = (value) =>
  value === null || value === false || (Array.isArray(value) && value.length === 0) ? nothing : [text(value)]

export const valuesExcept =
  (...plain: ReadonlyArray<string>): BilledValues =>
  (value) =>
    value === null || plain.includes(value as string) ? nothing : [text(value)]

/** Returns a tool's types, from `type` fields in any case. The array is `[undefined]` if the tool has no type. */
const typesOf = (tool: unknown): ReadonlyArray<unknown> => {
  if (typeof tool !== "object" || tool === null) return [tool]
  const types = Object.entries(tool).flatMap(([name, value]) => (inAnyCase(name) === "type" ? [value] : []))
  return types.length === 0 ? [undefined] : types
}

/** Finds the types of the tools that the vendor runs. */
export const toolTypesExcept =
  (isClients: (type: unknown) => boolean): BilledValues =>
  (tools) =>
    Array.isArray(tools)
      ? tools.flatMap(typesOf).flatMap((type) => (type === null || isClients(type) ? nothing : [text(type)]))
      : anyValue(tools)

const modalities: BilledValues = (value) =>
  Array.isArray(value) ? value.flatMap((one) => valuesExcept("text")(one)) : anyValue(value)

export const otherModels = "another model may serve the call at another price"
export const searches = "the vendor searches the web and bills that in addition to the tokens"
export const vendorTools = "the vendor runs its own tools and bills them in addition to the tokens"

export interface Rule {
  readonly asksFor: BilledValues
  readonly why: string
  /** Present if the field can never have a price. */
  readonly never?: true
}

/** A protocol's fields that change the vendor's bill. */
export type Billed = ReadonlyMap<string, Rule>

/** Returns rules that reject other protocols' completion limits, because they would have no effect. */
export const otherLimits = (own: string, others: ReadonlyArray<string>): ReadonlyArray<[string, Rule]> =>
  [...others, "max_new_tokens", "max_tokens_to_sample", "num_predict"].map((name) => [
    name,
    { asksFor: anyValue, why: `this protocol limits the answer with ${own}`, never: true }
  ])

/** The billed fields of chat and text completions, with the reasons. */
export const billed: Billed = new Map<string, Rule>([
  ["models", { asksFor: anyValue, why: otherModels }],
  ["fallbacks", { asksFor: anyValue, why: otherModels }],
  ["route", { asksFor: anyValue, why: otherModels }],
  ["provider", { asksFor: anyValue, why: "another provider may serve the call at another price" }],
  ["transforms", { asksFor: anyValue, why: "the billed prompt differs from the one that was sent" }],
  [
    "service_tier",
    { asksFor: valuesExcept("auto", "default", "standard", "on_demand"), why: "other tiers are priced differently" }
  ],
  ["speed", { asksFor: valuesExcept("standard"), why: "other speeds are priced differently" }],
  ["plugins", { asksFor: anyValue, why: vendorTools }],
  ["tools", { asksFor: toolTypesExcept((type) => type === "function" || type === "custom"), why: vendorTools }],
  ["mcp_servers", { asksFor: anyValue, why: vendorTools }],
  ["data_sources", { asksFor: anyValue, why: vendorTools }],
  ["web_search_options", { asksFor: anyValue, why: searches }],
  ["search_parameters", { asksFor: anyValue, why: searches }],
  ["enable_search", { asksFor: anyValue, why: searches }],
  ["modalities", { asksFor: modalities, why: "an answer that is not text is priced differently" }],
  // xAI generates and bills a deferred completion.
  ["deferred", { asksFor: anyValue, why: "an answer that is fetched later cannot be charged", never: true }],
  ["prediction", { asksFor: anyValue, why: "predicted tokens are billed beyond the answer's limit" }],
  ...otherLimits("max_tokens or max_completion_tokens", ["max_output_tokens"])
])

/** Returns the fields that may have a price in the configuration. */
export const priceableOf = (billed: Billed): ReadonlyArray<string> =>
  [...billed].flatMap(([field, { never }]) => (never ? [] : [field]))

/**
 * Returns the extras that a request uses. `Left` contains the reason to reject it. Headers are treated like body fields. `known` contains the
 * requested values of long members, because the body does not contain them.
 */
export const extrasOf = (
  model: Model,
  billed: Billed,
  body: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> | undefined,
  known?: ReadonlyMap<string, ReadonlyArray<string>>
): Either.Either<ReadonlyArray<Extra>, InvalidRequest> => {
  const asked: Array<Extra> = []
  const problem =
    collectExtras(asked, model, billed, body, known) ?? (headers && collectExtras(asked, model, billed, headers))
  return problem === undefined ? Either.right(asked.length === 0 ? none : asked) : Either.left(problem)
}

/** Other fields that affect the bound, the charge or the response. */
const read: ReadonlySet<string> = new Set(
  (
    "model messages prompt input system instructions stream stream_options max_tokens max_completion_tokens max_output_tokens n best_of " +
    "store previous_response_id conversation dimensions encoding_format query documents top_n return_documents"
  ).split(" ")
)

/** Matches every character that `inAnyCase` could change to an ASCII letter. */
const capital = /[A-Z\u0080-\uffff]/

/** Returns a name in lower case, for upstreams that ignore case. */
export const inAnyCase = (name: string): string => (capital.test(name) ? name.toUpperCase().toLowerCase() : name)

/** Rejects a field that differs only in case from a field that the service reads or bills. */
export const lookalike = (billed: Billed, field: string): InvalidRequest | undefined => {
  const name = inAnyCase(field)
  return name !== field && (read.has(name) || billed.has(name))
    ? InvalidRequest.of(field, `must be written as ${name}`)
    : undefined
}

const collectExtras = (
  asked: Array<Extra>,
  model: Model,
  billed: Billed,
  fields: Readonly<Record<string, unknown>>,
  known?: ReadonlyMap<string, ReadonlyArray<string>>
): InvalidRequest | undefined => {
  for (const field in fields) {
    const rule = billed.get(field)
    if (rule === undefined) {
      const other = lookalike(billed, field)
      if (other !== undefined) return other
      continue
    }
    for (const value of known?.get(field) ?? rule.asksFor(fields[field])) {
      const extra = model.extras.find((one) => one.field === field && (one.values?.includes(value) ?? true))
      if (extra === undefined) return refused(field, rule)
      if (!asked.includes(extra)) asked.push(extra)
    }
  }
  return undefined
}

const none: ReadonlyArray<Extra> = []

const refused = (field: string, { never, why }: Rule): InvalidRequest => {
  const rule = never === true ? why : `this model does not support it: ${why}`
  return InvalidRequest.of(field, rule)
}

const million = 1_000_000n

/** Returns the model at the prices that apply with these extras. */
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
