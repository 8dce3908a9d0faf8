/** The configuration sections `models`, `aliases` and `auto`. */
import { Layer, Schema } from "effect"
import { UsdPer } from "../../kernel/Price.ts"
import { billed as messagesBilled } from "../dialects/messages/Billed.ts"
import { billed as responsesBilled } from "../dialects/responses/Billed.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { Count, distinct, Factor, NonEmpty, readAs, Seconds } from "../../kernel/Setting.ts"
import { policies } from "../../upstream/routing/Order.ts"
import { PriceFactor } from "../../books/prices/PriceFactors.ts"
import { withFactor } from "../prompts/Factor.ts"
import { billed, priceableOf } from "../prompts/Extras.ts"
import { Models } from "../prompts/Model.ts"
import type { Catalogue, DetailPrices, Model } from "../prompts/Model.ts"

/** The fields that a model's `extras` may name. */
const priceable = [...new Set([billed, messagesBilled, responsesBilled].flatMap(priceableOf))]

const LimitField = Schema.Literal("max_completion_tokens", "max_tokens", "none").annotations({
  message: () => ({ message: "must be max_completion_tokens, max_tokens or none", override: true })
})

const Modalities = Schema.optionalWith(Schema.NonEmptyArray(NonEmpty), { default: () => ["text"] as const })

const UsdPerRequest = Schema.optionalWith(UsdPer(1), { default: () => 0n as UnitPrice })

const UsdPerMillion = Schema.optional(UsdPer(1_000_000))

/** Prices of tokens that the upstream bills separately. If a price is missing, those tokens are charged at the ordinary price. */
const details = {
  /** Prompt tokens that the upstream read from its cache. */
  cached_prompt_usd_per_million: UsdPerMillion,
  /** Audio tokens that the upstream read from its cache. */
  cached_prompt_audio_usd_per_million: UsdPerMillion,
  /** Prompt tokens that the upstream wrote to its cache. */
  cache_write_usd_per_million: UsdPerMillion,
  /** Prompt tokens that the upstream wrote to its cache for an hour. */
  cache_write_1h_usd_per_million: UsdPerMillion,
  prompt_audio_usd_per_million: UsdPerMillion,
  prompt_image_usd_per_million: UsdPerMillion,
  reasoning_usd_per_million: UsdPerMillion,
  completion_audio_usd_per_million: UsdPerMillion,
  completion_image_usd_per_million: UsdPerMillion
}
const Details = Schema.Struct(details)

const Price = Schema.Struct({
  prompt_usd_per_million: UsdPer(1_000_000),
  completion_usd_per_million: UsdPer(1_000_000),
  /** USD per call, in addition to the tokens. */
  usd_per_request: UsdPerRequest,
  ...details,
  /** Prices of calls with longer prompts. They apply to all tokens of the call. If a price is missing, the base price applies. */
  long_context: Schema.optional(
    Schema.NonEmptyArray(
      Schema.Struct({
        above_prompt_tokens: Count,
        prompt_usd_per_million: UsdPerMillion,
        completion_usd_per_million: UsdPerMillion,
        ...details
      })
    ).pipe(
      Schema.filter((tiers) =>
        tiers.every((tier, i) => i === 0 || tiers[i - 1]!.above_prompt_tokens < tier.above_prompt_tokens)
          ? undefined
          : { path: [], message: "each above_prompt_tokens must be greater than the previous one" }
      )
    )
  )
})

const detailPricesOf = (price: typeof Details.Type): DetailPrices | undefined => {
  const named: { readonly [Name in keyof Required<DetailPrices>]: DetailPrices[Name] | undefined } = {
    cached_audio_tokens: price.cached_prompt_audio_usd_per_million,
    cached_tokens: price.cached_prompt_usd_per_million,
    cache_write_tokens: price.cache_write_usd_per_million,
    cache_write_1h_tokens: price.cache_write_1h_usd_per_million,
    prompt_audio_tokens: price.prompt_audio_usd_per_million,
    prompt_image_tokens: price.prompt_image_usd_per_million,
    reasoning_tokens: price.reasoning_usd_per_million,
    completion_audio_tokens: price.completion_audio_usd_per_million,
    completion_image_tokens: price.completion_image_usd_per_million
  }
  const setPrices = Object.entries(named).filter(([, one]) => one !== undefined)
  return setPrices.length === 0 ? undefined : Object.fromEntries(setPrices)
}

const ExtraEntry = Schema.Struct({
  field: Schema.Literal(...priceable).annotations({
    message: () => ({ message: `must be one of ${priceable.join(", ")}`, override: true })
  }),
  /** The values or tool types to allow. By default, all are allowed. */
  values: Schema.optionalWith(Schema.UndefinedOr(Schema.NonEmptyArray(NonEmpty)), { default: () => undefined }),
  /** A multiplier for the prompt and completion prices. */
  price_factor: Schema.optionalWith(Factor, { default: () => 1_000_000n }),
  /** USD added to a call's price if it uses this field. */
  request_price: UsdPerRequest.pipe(Schema.fromKey("usd_per_request"))
})

const PolicyName = Schema.Literal(...policies).annotations({
  message: () => ({ message: `must be one of ${policies.join(", ")}`, override: true })
})

const Weight = Schema.JsonNumber.pipe(Schema.nonNegative({ message: () => "must be a non-negative number" }))

const Retries = Schema.Int.pipe(Schema.between(1, 10, { message: () => "must be a whole number from 1 to 10" }))

const ModelFields = Schema.Struct({
  id: NonEmpty,
  name: Schema.optional(NonEmpty),
  description: Schema.optionalWith(Schema.String, { default: () => "" }),
  owned_by: Schema.optionalWith(NonEmpty, { default: () => "system" }),
  /** Unix time in seconds. */
  created: Schema.optional(Count),
  input_modalities: Modalities,
  output_modalities: Modalities,
  context_length: Count,
  max_output_tokens: Count,
  /** Tokens to reserve for an image in a prompt. The charge is based on the vendor's count. */
  max_attachment_tokens: Schema.optionalWith(Count, { default: () => 4_096 }),
  /** Tokens to reserve for the upstream's template. The JSON around a prompt is already longer than most templates. */
  max_added_tokens: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 0 }),
  /** Tokens to reserve for the instructions that the upstream adds to a request with tools. */
  max_tool_tokens: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 1_700 }),
  /**
   * The upstream's field for the completion limit. Newer OpenAI models accept only `max_completion_tokens`. Many other models accept only
   * `max_tokens` and ignore `max_completion_tokens`, so their completions would have no limit.
   */
  limit_field: Schema.optionalWith(LimitField, { default: () => "max_completion_tokens" as const }),
  price: Price,
  /** A multiplier for all prices, as a markup or discount. */
  price_factor: Schema.optional(PriceFactor),
  /** Fields that change the upstream's bill, with their prices. A request with such a field but without an entry here is rejected. */
  extras: Schema.optionalWith(Schema.Array(ExtraEntry), { default: () => [] }),
  /**
   * Whether requests may refer to files, file stores, containers and audio outputs by the vendor's ids. The vendor stores these under the upstream's
   * key, so every caller can use all callers' objects.
   */
  vendor_files: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  /** The rule that orders the upstreams for each call. By default, they are tried in the order of `upstreams`. */
  routing: Schema.optional(PolicyName),
  /** Whether calls go to the upstream that last served their conversation. That upstream's cache may contain the start of the prompt. */
  sticky: Schema.optional(Schema.Boolean),
  /** The maximum number of further rounds if no upstream served the call. */
  retries: Schema.optional(Retries),
  /** The maximum time from a call's start to the start of its last round. */
  retry_ms: Schema.optionalWith(Seconds, { default: () => 30_000 }).pipe(Schema.fromKey("retry_seconds")),
  /** Models to try, in this order, if all upstreams fail. A call never costs more than its reservation. */
  fallbacks: Schema.optional(Schema.NonEmptyArray(NonEmpty)),
  upstreams: Schema.NonEmptyArray(
    Schema.Struct({
      upstream: NonEmpty,
      model: Schema.optional(NonEmpty),
      limit_field: Schema.optional(LimitField),
      /** This upstream's share of the calls, relative to the other weights. */
      weight: Schema.optional(Weight),
      /** The vendor's price, for routing by cost and for the operator's cost view. It does not affect the callers' charges. */
      cost: Schema.optional(
        Schema.Struct({
          prompt_usd_per_million: UsdPer(1_000_000),
          completion_usd_per_million: UsdPer(1_000_000),
          usd_per_request: UsdPerRequest
        })
      )
    })
  )
})

/** An entry of `models`. Routing by cost requires each upstream's `cost`; only routing by weights allows `weight`. */
const ModelEntry = ModelFields.pipe(
  Schema.filter(({ routing, upstreams }) =>
    upstreams.flatMap(({ cost, weight }, i): ReadonlyArray<Schema.FilterIssue> => {
      if (routing === "cost" && cost === undefined)
        return [{ path: ["upstreams", i, "cost"], message: "must be set for routing by cost" }]
      if (routing !== "weights" && weight !== undefined)
        return [{ path: ["upstreams", i, "weight"], message: 'must be omitted unless "routing" is "weights"' }]
      return []
    })
  )
)

const modelOf = (entry: typeof ModelEntry.Type): Model =>
  entry.price_factor === undefined ? listed(entry) : withFactor(listed(entry), entry.price_factor)

/** Builds the model at its list price. */
const listed = (entry: typeof ModelEntry.Type): Model => ({
  id: entry.id,
  name: entry.name ?? entry.id,
  description: entry.description,
  owned_by: entry.owned_by,
  created: entry.created,
  input_modalities: entry.input_modalities,
  output_modalities: entry.output_modalities,
  context_length: entry.context_length,
  output_tokens_max: entry.max_output_tokens,
  attachment_tokens_max: entry.max_attachment_tokens,
  added_tokens_max: entry.max_added_tokens,
  tool_tokens_max: entry.max_tool_tokens,
  prompt_price: entry.price.prompt_usd_per_million,
  completion_price: entry.price.completion_usd_per_million,
  request_price: entry.price.usd_per_request,
  detail_prices: detailPricesOf(entry.price),
  long_context: entry.price.long_context?.map((tier) => ({
    above_prompt_tokens: tier.above_prompt_tokens,
    prompt_price: tier.prompt_usd_per_million,
    completion_price: tier.completion_usd_per_million,
    detail_prices: detailPricesOf(tier)
  })),
  extras: entry.extras,
  vendor_files: entry.vendor_files,
  routing:
    entry.routing === undefined && entry.sticky !== true
      ? undefined
      : { policy: entry.routing ?? "order", sticky: entry.sticky ?? false },
  retries: entry.retries === undefined ? undefined : { max: entry.retries, within_ms: entry.retry_ms },
  fallbacks: entry.fallbacks,
  routes: entry.upstreams.map(({ cost, limit_field, model, upstream, weight }) => ({
    upstream,
    model: model ?? entry.id,
    limit_field: limit_field ?? entry.limit_field,
    ...(weight !== undefined && { weight }),
    ...(cost !== undefined && {
      cost: {
        prompt_price: cost.prompt_usd_per_million,
        completion_price: cost.completion_usd_per_million,
        request_price: cost.usd_per_request
      }
    })
  }))
})

export const ModelSetting = readAs(ModelEntry, modelOf)

export const fields = {
  models: Schema.optionalWith(distinct(ModelSetting, ["auto"]), { default: () => [] }),
  /** The model that `auto` selects. */
  auto: Schema.optional(NonEmpty),
  /** Model ids, by alias. */
  aliases: Schema.optional(Schema.Record({ key: NonEmpty, value: NonEmpty }))
}

export const layer = ({
  aliases,
  auto,
  models
}: {
  readonly models: Catalogue["models"]
  readonly auto?: string | undefined
  readonly aliases?: Readonly<Record<string, string>> | undefined
}) =>
  Layer.succeed(Models, {
    models,
    auto,
    aliases: aliases === undefined ? undefined : new Map(Object.entries(aliases))
  })
