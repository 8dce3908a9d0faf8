/**
 * Validates requests for media models and computes their quotes. The functions are pure.
 *
 * Where the specification is silent:
 * - Parameters outside `passes` are not sent to the vendor, because they could change its price.
 */
import { Either, Schema } from "effect"
import type { UnitPrice } from "../../kernel/Price.ts"
import { isObject } from "../../upstream/wire/Failures.ts"
import { MediaRejected } from "./Problems.ts"

interface ModelFacts {
  readonly id: string
  readonly display_name: string
  readonly pricing_note: string
  /** The upstream's configured name, and the model's path there. */
  readonly upstream: string
  readonly endpoint: string
  /** Model-specific parameters. They are sent unchanged and must not affect the vendor's charge. */
  readonly passes: ReadonlyArray<string>
  readonly prompt_required: boolean
}

export interface Resolution {
  readonly tier: string
  /** USD per second, without and with audio. */
  readonly price: UnitPrice
  readonly price_with_audio: UnitPrice
}

export interface VideoModel extends ModelFacts {
  readonly type: "video"
  /** The resolution tiers, with the default first. A model without configured tiers has a single tier with an empty name. */
  readonly resolutions: readonly [Resolution, ...ReadonlyArray<Resolution>]
  /** The durations that the model accepts, in seconds: a range, a set, or undeclared. */
  readonly duration:
    | { readonly min: number; readonly max: number }
    | { readonly set: ReadonlyArray<number> }
    | undefined
  readonly default_duration: number
  /** `none` if the model generates no audio, otherwise the default: `off` or `on`. */
  readonly audio: "none" | "off" | "on"
  /** Whether the model starts from a first frame. If so, `start_image_url` is required; otherwise, it must be absent. */
  readonly from_image: boolean
}

export interface ImageModel extends ModelFacts {
  readonly type: "image"
  /** USD per image. */
  readonly price: UnitPrice
  readonly images_max: number
  readonly sizes: ReadonlyArray<string>
  /** Whether this model serves requests that specify no model. */
  readonly default: boolean
}

export type MediaModel = VideoModel | ImageModel

// ---- the request --------------------------------------------------------------------------------------------------------

/** The documented parameters, all optional. Each model defines the parameters and values that it accepts. */
export const MediaRequest = Schema.Struct({
  model: Schema.optional(Schema.String),
  /** Some models require a prompt. */
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
/** Model-specific parameters (`passes`) are additional members. */
export interface MediaRequest extends Schema.Schema.Type<typeof MediaRequest> {
  readonly [parameter: string]: unknown
}

export const imageSizes = [
  "square_hd",
  "square",
  "portrait_4_3",
  "portrait_16_9",
  "landscape_4_3",
  "landscape_16_9"
] as const

/** The maximum duration for a model that declares none, in seconds. */
export const openDurationMax = 60

/** A model's constraint on a parameter, as text and as a predicate. */
interface Rule {
  readonly field: string
  readonly words: string
  readonly allows: (value: unknown) => boolean
}

const rule = (field: string, words: string, allows: Rule["allows"]): Rule => ({ field, words, allows })

/** Returns a constraint on a parameter that can be absent. */
const optional = (field: string, words: string, allows: Rule["allows"]): Rule =>
  rule(field, words, (value) => isAbsent(value) || allows(value))

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null
const isText = (value: unknown): value is string => typeof value === "string"

/** Returns a model's constraints in the order they are checked. The first violation is reported. */
const rulesOf = (model: MediaModel): ReadonlyArray<Rule> => [
  optional("prompt", "must be a string", isText),
  ...(model.prompt_required
    ? [rule("prompt", "must be a non-empty string for this model", (value) => isText(value) && value.trim() !== "")]
    : []),
  optional("seed", "must be a whole number", Number.isSafeInteger),
  ...(model.type === "video" ? videoRules(model) : imageRules(model))
]

const videoRules = ({
  audio,
  default_duration,
  duration,
  from_image,
  resolutions
}: VideoModel): ReadonlyArray<Rule> => {
  const tiers = resolutions.map(({ tier }) => tier)
  return [
    optional(
      "resolution",
      tiers[0] === "" ? "must be omitted, because this model has no tiers" : `must be one of ${tiers.join(", ")}`,
      (value) => value !== "" && tiers.includes(value as string)
    ),
    rule("duration", durationRule(duration), (value) =>
      isAcceptable(duration, isAbsent(value) ? default_duration : value)
    ),
    optional("audio", "must be true or false", (value) => typeof value === "boolean"),
    optional(
      "audio",
      "must not be true, because this model generates no audio",
      (value) => value !== true || audio !== "none"
    ),
    from_image
      ? rule("start_image_url", "must be an http(s) URL or a data URI of an image", isImage)
      : rule("start_image_url", "must be omitted; use an image-to-video model", isAbsent)
  ]
}

const isAcceptable = (declared: VideoModel["duration"], seconds: unknown): boolean => {
  if (typeof seconds !== "number" || !Number.isInteger(seconds) || seconds < 1) return false
  if (declared === undefined) return seconds <= openDurationMax
  return "set" in declared ? declared.set.includes(seconds) : seconds >= declared.min && seconds <= declared.max
}

const durationRule = (declared: VideoModel["duration"]): string => {
  if (declared === undefined) return `must be a whole number of seconds from 1 to ${openDurationMax}`
  return "set" in declared
    ? `must be one of ${declared.set.join(", ")} seconds`
    : `must be a whole number of seconds from ${declared.min} to ${declared.max}`
}

/** Returns whether a value is a URL that the vendor can fetch, or an image as a data URI. */
export const isImage = (value: unknown): value is string =>
  isText(value) &&
  (/^data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]+$/i.test(value) ||
    (/^https?:\/\/[^/]/i.test(value) && URL.canParse(value)))

const imageRules = ({ images_max, sizes }: ImageModel): ReadonlyArray<Rule> => [
  optional(
    "num_images",
    `must be a whole number from 1 to ${images_max}`,
    (value) => typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= images_max
  ),
  optional("image_size", `must be one of ${sizes.join(", ")}`, (value) => sizes.includes(value as string)),
  optional("strength", "must be a number from 0 to 1", (value) => typeof value === "number" && value >= 0 && value <= 1)
]

const rejected = (field: string, rule: string) =>
  Either.left(new MediaRejected({ message: `${field}: ${rule}`, field, rule }))

interface Accepted {
  readonly model: MediaModel
  readonly job: MediaRequest
}

/** Returns the requested model, and the request without its absent parameters. */
const accept = (
  models: ReadonlyArray<MediaModel>,
  request: Readonly<Record<string, unknown>>
): Either.Either<Accepted, MediaRejected> => {
  const model =
    request.model === undefined
      ? models.find((one) => one.type === "image" && one.default)
      : models.find(({ id }) => id === request.model)
  if (model === undefined) {
    return rejected(
      "model",
      `must be one of ${models.map(({ id }) => id).join(", ") || "none: no model is configured"}`
    )
  }
  const broken = rulesOf(model).find(({ allows, field }) => !allows(request[field]))
  if (broken !== undefined) return rejected(broken.field, broken.words)
  const job = Object.fromEntries(Object.entries(request).filter(([, value]) => !isAbsent(value)))
  return Either.right({ model, job })
}

/** Validates a JSON value as a request for its model. */
export const requestOf = (
  models: ReadonlyArray<MediaModel>,
  value: unknown
): Either.Either<MediaRequest, MediaRejected> =>
  isObject(value) ? Either.map(accept(models, value), ({ job }) => job) : rejected("body", "must be a JSON object")

// ---- the quote ----------------------------------------------------------------------------------------------------------

export interface Quote {
  readonly model: MediaModel
  /** The vendor's request body. */
  readonly input: Record<string, unknown>
  readonly units: number
  readonly unit: "second" | "image"
  /** USD per unit. */
  readonly price: UnitPrice
}

/** Builds the vendor's request and computes the number of units and their price. Fails if the model does not accept the request. */
export const quoteOf = (
  models: ReadonlyArray<MediaModel>,
  request: MediaRequest
): Either.Either<Quote, MediaRejected> =>
  Either.map(accept(models, request), ({ job, model }) => {
    const shared = {
      ...Object.fromEntries(model.passes.flatMap((name) => (job[name] === undefined ? [] : [[name, job[name]]]))),
      ...(job.prompt !== undefined && { prompt: job.prompt }),
      ...(job.seed !== undefined && { seed: job.seed })
    }
    return model.type === "video" ? quoteVideo(model, job, shared) : quoteImage(model, job, shared)
  })

const quoteVideo = (
  model: VideoModel,
  { audio = model.audio === "on", duration = model.default_duration, resolution, start_image_url }: MediaRequest,
  shared: Record<string, unknown>
): Quote => {
  const tier = model.resolutions.find((one) => one.tier === resolution) ?? model.resolutions[0]
  return {
    model,
    input: {
      ...shared,
      duration,
      ...(tier.tier !== "" && { resolution: tier.tier }),
      ...(model.audio !== "none" && { generate_audio: audio }),
      ...(model.from_image && { image_url: start_image_url })
    },
    units: duration,
    unit: "second",
    price: audio ? tier.price_with_audio : tier.price
  }
}

const quoteImage = (
  model: ImageModel,
  { image_size, num_images = 1, strength }: MediaRequest,
  shared: Record<string, unknown>
): Quote => ({
  model,
  input: {
    ...shared,
    num_images,
    ...(image_size !== undefined && { image_size }),
    ...(strength !== undefined && { strength })
  },
  units: num_images,
  unit: "image",
  price: model.price
})
