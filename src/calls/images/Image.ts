/** Request and response schemas of the service's image routes. */
import { Schema } from "effect"
import { imageSizes, isImage } from "../media/Model.ts"
import { endUserFields } from "../metered/EndUser.ts"

export type ImageSize = (typeof imageSizes)[number]

export const OutputFormat = Schema.Literal("png", "jpeg", "webp").annotations({
  message: () => ({ message: "must be one of png, jpeg, webp", override: true })
})

const wholeNumber = Schema.Int.annotations({ message: () => ({ message: "must be a whole number", override: true }) })

export const ImageRequest = Schema.Struct({
  prompt: Schema.String.pipe(
    Schema.filter((prompt) => prompt.trim() !== "", { message: () => "must be a non-empty string" })
  ),
  num_images: Schema.optionalWith(
    wholeNumber.pipe(Schema.greaterThanOrEqualTo(1, { message: () => "must be a whole number of at least 1" })),
    { default: () => 1, nullable: true }
  ),
  image_size: Schema.optionalWith(
    Schema.Literal(...imageSizes).annotations({
      message: () => ({ message: `must be one of ${imageSizes.join(", ")}`, override: true })
    }),
    { default: () => "square_hd" as const, nullable: true }
  ),
  /** The source image of an edit, as a URL or a data URI. */
  source_url: Schema.optionalWith(
    Schema.String.pipe(
      Schema.filter(isImage, { message: () => "must be an http(s) URL or a base64 data URI of an image" })
    ),
    { nullable: true }
  ),
  /** How much the source may change, from 0 to 1. */
  strength: Schema.optionalWith(
    Schema.JsonNumber.pipe(Schema.between(0, 1, { message: () => "must be a number from 0.0 to 1.0" })),
    { nullable: true }
  ),
  /** Whether to wait for the images. If they take too long, the status is `PROCESSING`, and the client polls with the `request_id`. */
  sync_mode: Schema.optionalWith(Schema.Boolean, { default: () => true, nullable: true }),
  provider: Schema.optionalWith(Schema.String, { nullable: true }),
  seed: Schema.optionalWith(wholeNumber, { nullable: true }),
  guidance_scale: Schema.optionalWith(Schema.JsonNumber, { nullable: true }),
  num_inference_steps: Schema.optionalWith(wholeNumber, { nullable: true }),
  ...endUserFields
}).annotations({ identifier: "ImageRequest" })
export interface ImageRequest extends Schema.Schema.Type<typeof ImageRequest> {}

export const ImageStatusQuery = Schema.Struct({
  request_id: Schema.NonEmptyString.annotations({
    description: "The id from the response to the image request",
    message: () => ({ message: "must be the id of an image request", override: true })
  }),
  provider: Schema.optional(
    Schema.String.annotations({ description: "Not needed, because the id determines the provider" })
  )
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
