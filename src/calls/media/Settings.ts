/** The configuration section `media`. */
import { Context, Layer, Schema } from "effect"
import * as Price from "../../kernel/Price.ts"
import { UsdPer } from "../../kernel/Price.ts"
import { Count, distinct, NonEmpty, readAs } from "../../kernel/Setting.ts"
import { imageSizes } from "./Model.ts"
import type { ImageModel, MediaModel, Resolution, VideoModel } from "./Model.ts"

const modelFields = {
  id: NonEmpty,
  display_name: Schema.optional(NonEmpty),
  /** The upstream's configured name, and the model's path there. */
  upstream: NonEmpty,
  endpoint: NonEmpty,
  pricing_note: Schema.optional(Schema.String),
  /** Model-specific parameters. They are sent unchanged and must not affect the vendor's charge. */
  passes: Schema.optionalWith(Schema.Array(NonEmpty), { default: () => ["negative_prompt", "aspect_ratio"] }),
  /** Whether the service rejects a request without a prompt. Otherwise, the vendor decides. */
  prompt_required: Schema.optionalWith(Schema.Boolean, { default: () => false })
} as const

const VideoEntry = Schema.Struct({
  ...modelFields,
  type: Schema.Literal("video"),
  /** The resolution tiers, with the default first. */
  resolutions: Schema.optional(
    Schema.NonEmptyArray(
      Schema.Struct({
        tier: NonEmpty,
        usd_per_second: UsdPer(1),
        usd_per_second_with_audio: Schema.optional(UsdPer(1))
      })
    )
  ),
  /** USD per second for a model without tiers. */
  usd_per_second: Schema.optional(UsdPer(1)),
  /** The durations that the model accepts, in seconds: a range or a set. By default, 1 to 60. */
  duration: Schema.optionalWith(
    Schema.UndefinedOr(
      Schema.Union(Schema.Struct({ min: Count, max: Count }), Schema.Struct({ set: Schema.NonEmptyArray(Count) }))
    ),
    { default: () => undefined }
  ),
  default_duration: Schema.optionalWith(Count, { default: () => 5 }),
  /** `none` if the model generates no audio, otherwise the default: `off` or `on`. */
  audio: Schema.optionalWith(Schema.Literal("none", "off", "on"), { default: () => "none" as const }),
  /** Whether the model starts from a first frame. */
  from_image: Schema.optionalWith(Schema.Boolean, { default: () => false })
}).pipe(
  Schema.filter((entry) =>
    (entry.resolutions === undefined) === (entry.usd_per_second === undefined)
      ? {
          path: ["usd_per_second"],
          message: "must be set if there are no resolutions with prices, and must be omitted otherwise"
        }
      : undefined
  )
)

const ImageEntry = Schema.Struct({
  ...modelFields,
  type: Schema.Literal("image"),
  /** USD per image. */
  price: Schema.propertySignature(UsdPer(1)).pipe(Schema.fromKey("usd_per_image")),
  images_max: Schema.optionalWith(Count, { default: () => 4 }),
  /** The accepted values of `image_size`. */
  sizes: Schema.optionalWith(Schema.NonEmptyArray(NonEmpty), { default: () => imageSizes }),
  /** Whether this model serves requests that specify no model. */
  default: Schema.optionalWith(Schema.Boolean, { default: () => false })
})

const imageModelOf = (entry: typeof ImageEntry.Type): ImageModel => ({
  ...entry,
  display_name: entry.display_name ?? entry.id,
  pricing_note: entry.pricing_note ?? `${Price.toDecimal(entry.price)} USD per image`
})

const videoModelOf = ({ usd_per_second, ...entry }: typeof VideoEntry.Type): VideoModel => {
  const [first, ...others] = (entry.resolutions ?? [{ tier: "", usd_per_second: usd_per_second! }]).map(
    (resolution): Resolution => ({
      tier: resolution.tier,
      price: resolution.usd_per_second,
      price_with_audio:
        ("usd_per_second_with_audio" in resolution ? resolution.usd_per_second_with_audio : undefined) ??
        resolution.usd_per_second
    })
  )
  const resolutions = [first!, ...others] as const
  const prices = resolutions.map(
    ({ price, price_with_audio, tier }) =>
      `${tier === "" ? "" : `${tier} `}${Price.toDecimal(price)}` +
      (entry.audio === "none" ? "" : ` (with audio ${Price.toDecimal(price_with_audio)})`)
  )
  return {
    ...entry,
    resolutions,
    display_name: entry.display_name ?? entry.id,
    pricing_note: entry.pricing_note ?? `USD per second of video: ${prices.join(", ")}`
  }
}

export const MediaModelSetting: Schema.Schema<MediaModel, typeof VideoEntry.Encoded | typeof ImageEntry.Encoded> =
  Schema.Union(readAs(VideoEntry, videoModelOf), readAs(ImageEntry, imageModelOf))

export class MediaModels extends Context.Tag("tollgate/media/MediaModels")<MediaModels, ReadonlyArray<MediaModel>>() {
  static readonly layer = (models: ReadonlyArray<MediaModel>) => Layer.succeed(MediaModels, models)
  static readonly layerNone = Layer.succeed(MediaModels, [])
}

export const fields = { media: Schema.optionalWith(distinct(MediaModelSetting), { default: () => [] }) }

export const layer = ({ media }: { readonly media: ReadonlyArray<MediaModel> }) => MediaModels.layer(media)
