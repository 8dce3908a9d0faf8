/** The models of the configuration file: `models` and `auto`. */
import { Layer, Schema } from "effect"
import { UsdPer } from "../kernel/Price.ts"
import type { UnitPrice } from "../kernel/Price.ts"
import { Count, distinct, Factor, NonEmpty, readAs } from "../kernel/Setting.ts"
import { billed, priceableOf } from "./Extras.ts"
import { Models } from "./Model.ts"
import type { Catalogue, Model } from "./Model.ts"

/** The fields that `extras` may name. */
const priceable = priceableOf(billed)

const LimitField = Schema.Literal("max_completion_tokens", "max_tokens", "none").annotations({
  message: () => ({ message: "max_completion_tokens, max_tokens or none", override: true })
})

const Modalities = Schema.optionalWith(Schema.NonEmptyArray(NonEmpty), { default: () => ["text"] as const })

const UsdPerRequest = Schema.optionalWith(UsdPer(1), { default: () => 0n as UnitPrice })

const ExtraEntry = Schema.Struct({
  field: Schema.Literal(...priceable).annotations({
    message: () => ({ message: `one of ${priceable.join(", ")}`, override: true })
  }),
  /** The values, or types of tools, that are served; all where it names none. */
  values: Schema.optionalWith(Schema.UndefinedOr(Schema.NonEmptyArray(NonEmpty)), { default: () => undefined }),
  /** Multiplies what prompt and answer of such a call cost. */
  price_factor: Schema.optionalWith(Factor, { default: () => 1_000_000n }),
  /** Added to such a call. */
  request_price: UsdPerRequest.pipe(Schema.fromKey("usd_per_request"))
})

const ModelEntry = Schema.Struct({
  id: NonEmpty,
  name: Schema.optional(NonEmpty),
  description: Schema.optionalWith(Schema.String, { default: () => "" }),
  owned_by: Schema.optionalWith(NonEmpty, { default: () => "system" }),
  /** Seconds since 1970. */
  created: Schema.optional(Count),
  input_modalities: Modalities,
  output_modalities: Modalities,
  context_length: Count,
  max_output_tokens: Count,
  /** What an image in a prompt counts at the most. */
  max_attachment_tokens: Schema.optionalWith(Count, { default: () => 4_096 }),
  /** What the upstream adds to a prompt at the most: its template, its own words about tools. */
  max_added_tokens: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 0 }),
  /**
   * The name under which the upstream takes the limit of an answer. Newer models of OpenAI know `max_completion_tokens` only; many
   * others know `max_tokens` only, and do not say so: their answers have no limit then.
   */
  limit_field: Schema.optionalWith(LimitField, { default: () => "max_completion_tokens" as const }),
  price: Schema.Struct({
    prompt_usd_per_million: UsdPer(1_000_000),
    completion_usd_per_million: UsdPer(1_000_000),
    /** For each call, beside its tokens. */
    usd_per_request: UsdPerRequest
  }),
  /** Fields that make the upstream bill otherwise, and what a call with one costs; without an entry, it is refused. */
  extras: Schema.optionalWith(Schema.Array(ExtraEntry), { default: () => [] }),
  upstreams: Schema.NonEmptyArray(
    Schema.Struct({ upstream: NonEmpty, model: Schema.optional(NonEmpty), limit_field: Schema.optional(LimitField) })
  )
})

const modelOf = (entry: typeof ModelEntry.Type): Model => ({
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
  prompt_price: entry.price.prompt_usd_per_million,
  completion_price: entry.price.completion_usd_per_million,
  request_price: entry.price.usd_per_request,
  extras: entry.extras,
  routes: entry.upstreams.map(({ limit_field, model, upstream }) => ({
    upstream,
    model: model ?? entry.id,
    limit_field: limit_field ?? entry.limit_field
  }))
})

export const fields = {
  models: Schema.optionalWith(distinct(readAs(ModelEntry, modelOf), ["auto"]), { default: () => [] }),
  /** The model behind `auto`. */
  auto: Schema.optional(NonEmpty)
}

export const layer = ({ auto, models }: { readonly models: Catalogue["models"]; readonly auto?: string | undefined }) =>
  Layer.succeed(Models, { models, auto })
