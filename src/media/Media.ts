/** Media models, what may be asked of them, and the quote that follows: a pure decision, made before anything runs. */
import { Context, Either, Schema } from "effect"
import { Usd } from "../kernel/Money.ts"
import type { UnitPrice } from "../kernel/Price.ts"
import { isObject } from "../upstream/Failures.ts"
import { MediaRejected } from "./Problems.ts"

interface ModelFacts {
  readonly id: string
  readonly display_name: string
  readonly pricing_note: string
  /** The name of the upstream in the configuration, and where the model is on it. */
  readonly upstream: string
  readonly endpoint: string
  /** Parameters of the model's own that pass as they are. None of them may change what the vendor charges. */
  readonly passes: ReadonlyArray<string>
  readonly prompt_required: boolean
}

export interface Resolution {
  readonly tier: string
  /** USD a second, without sound and with it. */
  readonly price: UnitPrice
  readonly price_with_audio: UnitPrice
}

export interface VideoModel extends ModelFacts {
  readonly type: "video"
  /** The first is the default; a model without tiers has one without a name. */
  readonly resolutions: readonly [Resolution, ...ReadonlyArray<Resolution>]
  /** Seconds: a range, a set, or nothing declared. */
  readonly duration:
    | { readonly min: number; readonly max: number }
    | { readonly set: ReadonlyArray<number> }
    | undefined
  readonly default_duration: number
  /** Whether it can make sound, and does unless told otherwise. */
  readonly audio: "none" | "off" | "on"
  /** Made from a first frame: `start_image_url` must be given, and elsewhere must not. */
  readonly from_image: boolean
}

export interface ImageModel extends ModelFacts {
  readonly type: "image"
  /** USD an image. */
  readonly price: UnitPrice
  readonly images_max: number
  readonly sizes: ReadonlyArray<string>
  /** Taken where a request names no model. */
  readonly default: boolean
}

export type MediaModel = VideoModel | ImageModel

export class MediaModels extends Context.Reference<MediaModels>()("tollgate/media/MediaModels", {
  defaultValue: (): ReadonlyArray<MediaModel> => []
}) {}

/** The longest video of a model that declares nothing. */
export const openDurationMax = 60

// ---- the quote ----------------------------------------------------------------------------------------------------------

export interface Quote {
  readonly model: MediaModel
  /** For the vendor. */
  readonly input: Record<string, unknown>
  readonly units: number
  readonly unit: "second" | "image"
  readonly price: UnitPrice
}

export const imageSizes = [
  "square_hd",
  "square",
  "portrait_4_3",
  "portrait_16_9",
  "landscape_4_3",
  "landscape_16_9"
] as const

const rejected = (field: string, rule: string) =>
  Either.left(new MediaRejected({ message: `${field}: ${rule}`, field, rule }))

/** What the request would cost, and what the vendor would be asked; rejected where it cannot be priced or accepted. */
export const quoteOf = (models: ReadonlyArray<MediaModel>, body: unknown): Either.Either<Quote, MediaRejected> => {
  if (!isObject(body)) return rejected("body", "a JSON object")
  const { model: asked, prompt, seed } = body
  const model =
    asked === undefined
      ? models.find((one) => one.type === "image" && one.default)
      : models.find(({ id }) => id === asked)
  if (model === undefined) {
    return rejected("model", `one of ${models.map(({ id }) => id).join(", ") || "none: no model is configured"}`)
  }
  if (!isAbsent(prompt) && typeof prompt !== "string") return rejected("prompt", "a text")
  if (model.prompt_required && (prompt ?? "").trim() === "") return rejected("prompt", "required by this model, a text")
  if (!isAbsent(seed) && !Number.isSafeInteger(seed)) return rejected("seed", "a whole number")
  const shared = {
    ...Object.fromEntries(model.passes.flatMap((name) => (isAbsent(body[name]) ? [] : [[name, body[name]]]))),
    ...(!isAbsent(prompt) && { prompt }),
    ...(!isAbsent(seed) && { seed })
  }
  return model.type === "video" ? quoteVideo(model, body, shared) : quoteImage(model, body, shared)
}

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null

const quoteVideo = (
  model: VideoModel,
  { audio, duration, resolution, start_image_url }: Record<string, unknown>,
  shared: Record<string, unknown>
): Either.Either<Quote, MediaRejected> => {
  const tiers = model.resolutions.map(({ tier }) => tier)
  const tier = isAbsent(resolution) ? model.resolutions[0] : model.resolutions.find((one) => one.tier === resolution)
  if (tier === undefined || (tier.tier === "" && !isAbsent(resolution))) {
    return rejected("resolution", tiers[0] === "" ? "this model has no tiers" : `one of ${tiers.join(", ")}`)
  }
  const seconds = isAbsent(duration) ? model.default_duration : duration
  if (typeof seconds !== "number" || !isAcceptable(model.duration, seconds)) {
    return rejected("duration", durationRule(model.duration))
  }
  if (!isAbsent(audio) && typeof audio !== "boolean") return rejected("audio", "true or false")
  if (audio === true && model.audio === "none") return rejected("audio", "this model makes no sound")
  const sounds = isAbsent(audio) ? model.audio === "on" : audio
  if (model.from_image ? !isImage(start_image_url) : !isAbsent(start_image_url)) {
    return rejected(
      "start_image_url",
      model.from_image ? "required, an http(s) address or a data URI of an image" : "use an image-to-video model"
    )
  }
  return Either.right({
    model,
    input: {
      ...shared,
      duration: seconds,
      ...(tier.tier !== "" && { resolution: tier.tier }),
      ...(model.audio !== "none" && { generate_audio: sounds }),
      ...(model.from_image && { image_url: start_image_url })
    },
    units: seconds,
    unit: "second",
    price: sounds ? tier.price_with_audio : tier.price
  })
}

const isAcceptable = (declared: VideoModel["duration"], seconds: number): boolean => {
  if (!Number.isInteger(seconds) || seconds < 1) return false
  if (declared === undefined) return seconds <= openDurationMax
  return "set" in declared ? declared.set.includes(seconds) : seconds >= declared.min && seconds <= declared.max
}

const durationRule = (declared: VideoModel["duration"]): string => {
  if (declared === undefined) return `a whole number of seconds, 1 to ${openDurationMax}`
  return "set" in declared
    ? `one of ${declared.set.join(", ")} seconds`
    : `a whole number of seconds, ${declared.min} to ${declared.max}`
}

/** An address that the vendor can fetch, or the image itself. */
export const isImage = (value: unknown): value is string =>
  typeof value === "string" &&
  (/^data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]+$/i.test(value) ||
    (/^https?:\/\/[^/]/i.test(value) && URL.canParse(value)))

const quoteImage = (
  model: ImageModel,
  { image_size, num_images, strength }: Record<string, unknown>,
  shared: Record<string, unknown>
): Either.Either<Quote, MediaRejected> => {
  const count = isAbsent(num_images) ? 1 : num_images
  if (typeof count !== "number" || !Number.isInteger(count) || count < 1 || count > model.images_max) {
    return rejected("num_images", `a whole number from 1 to ${model.images_max}`)
  }
  if (!isAbsent(image_size) && !model.sizes.includes(image_size as string)) {
    return rejected("image_size", `one of ${model.sizes.join(", ")}`)
  }
  if (!isAbsent(strength) && !(typeof strength === "number" && strength >= 0 && strength <= 1)) {
    return rejected("strength", "a number from 0 to 1")
  }
  return Either.right({
    model,
    input: {
      ...shared,
      num_images: count,
      ...(!isAbsent(image_size) && { image_size }),
      ...(!isAbsent(strength) && { strength })
    },
    units: count,
    unit: "image",
    price: model.price
  })
}

// ---- on the wire --------------------------------------------------------------------------------------------------------

export const MediaModelEntry = Schema.Struct({
  id: Schema.String,
  display_name: Schema.String,
  type: Schema.Literal("video", "image"),
  unit: Schema.Literal("second", "image"),
  unit_price_usd: Schema.Number,
  pricing_note: Schema.String,
  default: Schema.Boolean
}).annotations({ identifier: "MediaModelEntry" })

/** The documented parameters; a model's own may stand beside them. */
export const MediaRequest = Schema.Struct({
  model: Schema.optional(Schema.String),
  /** Required by models that say so. */
  prompt: Schema.optional(Schema.String),
  duration: Schema.optional(Schema.Int),
  resolution: Schema.optional(Schema.String),
  audio: Schema.optional(Schema.Boolean),
  seed: Schema.optional(Schema.Int),
  start_image_url: Schema.optional(Schema.String),
  num_images: Schema.optional(Schema.Int),
  image_size: Schema.optional(Schema.String),
  strength: Schema.optional(Schema.Number)
}).annotations({ identifier: "MediaRequest" })

export const MediaStatusName = Schema.Literal("IN_QUEUE", "IN_PROGRESS", "COMPLETED", "CANCELLED")

export const MediaSubmitted = Schema.Struct({
  request_id: Schema.String,
  model: Schema.String,
  provider: Schema.String,
  status: MediaStatusName,
  queue_position: Schema.Int,
  /** The quote; it does not change. */
  cost_usd: Usd,
  units: Schema.Number,
  unit: Schema.String
}).annotations({ identifier: "MediaSubmitted" })
export type MediaSubmitted = typeof MediaSubmitted.Type

const failure = {
  /** Of a generation that failed. */
  error: Schema.optionalWith(Schema.String, { exact: true }),
  error_type: Schema.optionalWith(
    Schema.Literal("media_rejected", "media_failed", "media_rate_limited", "media_unavailable"),
    { exact: true }
  )
} as const

export const MediaStatus = Schema.Struct({
  request_id: Schema.String,
  model: Schema.String,
  status: MediaStatusName,
  metrics: Schema.Struct({ inference_time: Schema.Number }),
  /** The charge is final. */
  settled: Schema.Boolean,
  /** The quote until it is settled, then the charge. */
  cost_usd: Usd,
  units: Schema.Number,
  unit: Schema.String,
  ...failure
}).annotations({ identifier: "MediaStatus" })
export type MediaStatus = typeof MediaStatus.Type

export const MediaResult = Schema.Struct({
  request_id: Schema.String,
  model: Schema.String,
  status: MediaStatusName,
  output: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  ...failure
}).annotations({ identifier: "MediaResult" })
export type MediaResult = typeof MediaResult.Type
