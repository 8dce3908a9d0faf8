/** Image generation by the direct route: what may be asked, what comes back, and what an image of a size costs. */
import { Context, Schema } from "effect"
import type { UnitPrice } from "../kernel/Price.ts"
import { imageSizes, isImage } from "../media/Media.ts"
import type { Provider } from "../upstream/Provider.ts"

export type ImageSize = (typeof imageSizes)[number]

/** A provider with a generation queue in the manner of fal. */
export interface ImageProvider extends Provider {
  /** Where its models are: from a text, and from an image. */
  readonly endpoint: string
  readonly image_to_image_endpoint: string | undefined
  /** USD an image, unless its size has a price of its own. */
  readonly price: UnitPrice
  readonly price_by_size: Readonly<Partial<Record<ImageSize, UnitPrice>>>
}

export class ImageProviders extends Context.Reference<ImageProviders>()("tollgate/images/ImageProviders", {
  defaultValue: (): ReadonlyArray<ImageProvider> => []
}) {}

export const imagesMax = 10

const within = (from: number, to: number, rule: string) =>
  Schema.JsonNumber.pipe(Schema.between(from, to, { message: () => rule }))

const whole = (from: number, to: number) =>
  Schema.Int.pipe(Schema.between(from, to, { message: () => `a whole number from ${from} to ${to}` }))

export const ImageRequest = Schema.Struct({
  prompt: Schema.String.pipe(
    Schema.filter((prompt) => prompt.trim() !== "" && prompt.length <= 10_000, {
      message: () => "a text of 1 to 10000 characters"
    })
  ),
  num_images: Schema.optionalWith(whole(1, imagesMax), { default: () => 1, nullable: true }),
  image_size: Schema.optionalWith(
    Schema.Literal(...imageSizes).annotations({
      message: () => ({ message: `one of ${imageSizes.join(", ")}`, override: true })
    }),
    { default: () => "square_hd" as const, nullable: true }
  ),
  /** For image-to-image: an address, or the image as a data URI. */
  source_url: Schema.optionalWith(
    Schema.String.pipe(
      Schema.filter(isImage, { message: () => "an http(s) address or a base64 data URI of an image" })
    ),
    { nullable: true }
  ),
  /** For image-to-image: how much of the source may change. */
  strength: Schema.optionalWith(within(0, 1, "a number from 0.0 to 1.0"), { nullable: true }),
  /** Waits for the images; if they take long, a request_id to poll with is answered all the same. */
  sync_mode: Schema.optionalWith(Schema.Boolean, { default: () => true, nullable: true }),
  provider: Schema.optionalWith(Schema.String, { nullable: true }),
  seed: Schema.optionalWith(whole(0, Number.MAX_SAFE_INTEGER), { nullable: true }),
  guidance_scale: Schema.optionalWith(within(0, 100, "a number from 0 to 100"), { nullable: true }),
  num_inference_steps: Schema.optionalWith(whole(1, 200), { nullable: true })
}).annotations({ identifier: "ImageRequest" })
export interface ImageRequest extends Schema.Schema.Type<typeof ImageRequest> {}

export const ImageStatusQuery = Schema.Struct({
  request_id: Schema.NonEmptyString.annotations({
    message: () => ({ message: "required: the id of an image request", override: true })
  }),
  provider: Schema.optional(Schema.String)
})

export const ImageAnswer = Schema.Struct({
  request_id: Schema.String,
  status: Schema.Literal("COMPLETED", "PROCESSING", "FAILED"),
  images: Schema.optionalWith(
    Schema.Array(
      Schema.Struct({
        url: Schema.String,
        width: Schema.optionalWith(Schema.Number, { exact: true }),
        height: Schema.optionalWith(Schema.Number, { exact: true })
      })
    ),
    { exact: true }
  ),
  provider: Schema.optionalWith(Schema.String, { exact: true }),
  error: Schema.optionalWith(Schema.String, { exact: true })
}).annotations({ identifier: "ImageAnswer" })
export interface ImageAnswer extends Schema.Schema.Type<typeof ImageAnswer> {}
