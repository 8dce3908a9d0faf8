/**
 * Images with OpenAI's fields: the request, its translation for a provider, and the response.
 *
 * Where the specification is silent:
 * - A field that could change the images but is unknown to the provider is rejected, and the error contains its name. `user` and `safety_identifier`
 *   identify the end user and are not sent upstream. `quality` may be `auto` or `standard`, the default of OpenAI's models.
 * - `model` is a provider's id, one of its aliases, or its endpoint. Without it, the first provider is used.
 * - A `size` in pixels selects the named size with these dimensions, or one of the provider's sizes (`usd_per_image_by_pixels`). `auto` is
 *   `square_hd`.
 * - `response_format` is `url` by default. The URL is the vendor's, and the vendor decides when it expires.
 */
import { Either, Schema } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { UnknownModel } from "../../upstream/models/Provider.ts"
import { endUserFields, endUserParts } from "../metered/EndUser.ts"
import { OutputFormat } from "./Image.ts"
import type { ImageSize } from "./Image.ts"
import { priceOf } from "./Prices.ts"
import type { ImagePrice } from "./Prices.ts"
import type { ImageProvider } from "./Settings.ts"

// ---- the request ----------------------------------------------------------------------------------------------------------------

/** Returns the schema of a field that accepts only these values. `rule` is the error message. */
const only = <const V extends string | number | boolean>(rule: string, ...values: ReadonlyArray<V>) =>
  Schema.Literal(...values).annotations({ message: () => ({ message: rule, override: true }) })

const Prompt = Schema.String.pipe(Schema.filter((prompt) => prompt.trim() !== "")).annotations({
  message: () => ({ message: "must be a non-empty string", override: true })
})
const countRule = { message: () => ({ message: "must be a whole number of at least 1", override: true }) }
const quality = only("must be auto or standard, because providers offer only one quality", "auto", "standard")
const background = only("must be auto, because the provider chooses it", "auto")
const moderation = only("must be auto, because the provider applies its own", "auto")
const input_fidelity = only("must be low, because the provider supports no other", "low")
const ResponseFormat = only("must be one of url, b64_json", "url", "b64_json")
const whole = "must be false, because images are not streamed"
const uncompressed = "must be 100, because images are not compressed further"
const noParts = "must be 0, because images are not streamed"

/** Rejects unknown fields, because they could change the images. */
const strictly = { parseOptions: { onExcessProperty: "error" } } as const

const nullable = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { nullable: true })

export const OpenAiImageRequest = Schema.Struct({
  prompt: Prompt,
  model: nullable(Schema.String),
  n: nullable(Schema.Int.pipe(Schema.positive()).annotations(countRule)),
  size: nullable(Schema.String),
  quality: nullable(quality),
  response_format: nullable(ResponseFormat),
  output_format: nullable(OutputFormat),
  background: nullable(background),
  moderation: nullable(moderation),
  style: Schema.optional(
    Schema.Null.annotations({
      message: () => ({ message: "must be omitted, because providers offer only one style", override: true })
    })
  ),
  output_compression: nullable(only(uncompressed, 100)),
  partial_images: nullable(only(noParts, 0)),
  stream: nullable(only(whole, false)),
  ...endUserFields
}).annotations({ identifier: "OpenAiImageRequest", ...strictly })

/** An edit's form fields, except its files. */
export const OpenAiEditFields = Schema.Struct({
  prompt: Prompt,
  model: Schema.optional(Schema.String),
  n: Schema.optional(Schema.NumberFromString.pipe(Schema.int(), Schema.positive()).annotations(countRule)),
  size: Schema.optional(Schema.String),
  quality: Schema.optional(quality),
  response_format: Schema.optional(ResponseFormat),
  output_format: Schema.optional(OutputFormat),
  background: Schema.optional(background),
  input_fidelity: Schema.optional(input_fidelity),
  output_compression: Schema.optional(only(uncompressed, "100")),
  partial_images: Schema.optional(only(noParts, "0")),
  stream: Schema.optional(only(whole, "false")),
  ...endUserParts
}).annotations(strictly)

/** A creation or an edit. An edit contains its images as data URIs. */
export interface Creation extends Pick<
  typeof OpenAiEditFields.Type,
  "prompt" | "model" | "n" | "size" | "response_format" | "output_format" | "user" | "safety_identifier"
> {
  readonly images?: ReadonlyArray<string> | undefined
  readonly mask?: string | undefined
}

// ---- the request for a provider ------------------------------------------------------------------------------------------------

/** Finds the provider by its id, endpoint or alias. Without `model`, returns the first provider. */
export const providerFor = (
  providers: ReadonlyArray<ImageProvider>,
  model: string | undefined
): Either.Either<ImageProvider, UnknownModel> => {
  const is = ({ aliases, endpoint, id }: ImageProvider) =>
    id === model || endpoint === model || aliases.includes(model!)
  const found = model === undefined ? providers[0] : providers.find(is)
  return found === undefined
    ? Either.left(
        new UnknownModel(
          model ?? "",
          providers.flatMap(({ aliases, id }) => [id, ...aliases])
        )
      )
    : Either.right(found)
}

/** The vendor's request, the number of images (`units`), and the price per image. */
export interface VendorRequest extends ImagePrice {
  readonly endpoint: string
  readonly input: Record<string, unknown>
  readonly units: number
}

/** Builds the provider's request. `Left` contains the first of the provider's constraints that the request violates. */
export const vendorRequestOf = (
  provider: ImageProvider,
  creation: Creation
): Either.Either<VendorRequest, InvalidRequest> => {
  const { images_max, output_formats } = provider
  const { images, mask, n = 1, output_format, prompt, size = "auto" } = creation
  if (n > images_max) return refused("n", `must be a whole number from 1 to ${images_max}`)
  if (output_format !== undefined && !output_formats.includes(output_format)) {
    const rule =
      output_formats.length === 0
        ? "must be omitted, because this provider chooses it"
        : `must be one of ${output_formats.join(", ")}`
    return refused("output_format", rule)
  }
  const vendors = sizeOf(provider, size)
  if (vendors === undefined) return refused("size", `must be one of ${supportedSizes(provider).join(", ")}`)
  const priced = priceOf(provider, typeof vendors === "string" ? vendors : size, images !== undefined)
  return Either.map(
    images === undefined ? Either.right(plainly(provider)) : edited(provider, images, mask),
    (made) => ({
      endpoint: made.endpoint,
      input: {
        prompt,
        num_images: n,
        image_size: vendors,
        ...(output_format !== undefined && { output_format }),
        ...made.input
      },
      units: n,
      ...priced
    })
  )
}

const refused = (field: string, rule: string) => Either.left(InvalidRequest.of(field, rule))

type Asked = Pick<VendorRequest, "endpoint" | "input">

const plainly = ({ endpoint }: ImageProvider): Asked => ({ endpoint, input: {} })

const edited = (
  { edits, image_to_image_endpoint: endpoint }: ImageProvider,
  images: ReadonlyArray<string>,
  mask: string | undefined
): Either.Either<Asked, InvalidRequest> => {
  const how = edits ?? (endpoint === undefined ? undefined : { endpoint, images_max: 1, mask: false })
  if (how === undefined) return refused("image", "this provider cannot edit images")
  if (images.length > how.images_max)
    return refused("image", `must contain at most ${how.images_max} images for this provider`)
  if (mask !== undefined && !how.mask) return refused("mask", "must be omitted, because this provider accepts no mask")
  const source = how.images_max === 1 ? { image_url: images[0] } : { image_urls: images }
  return Either.right({ endpoint: how.endpoint, input: { ...source, ...(mask !== undefined && { mask_url: mask }) } })
}

const named: Readonly<Record<string, ImageSize>> = {
  "1024x1024": "square_hd",
  "512x512": "square",
  "768x1024": "portrait_4_3",
  "576x1024": "portrait_16_9",
  "1024x768": "landscape_4_3",
  "1024x576": "landscape_16_9"
}

const supportedSizes = ({ price_by_pixels }: ImageProvider): ReadonlyArray<string> => [
  ...new Set(["auto", ...Object.keys(named), ...Object.keys(price_by_pixels)])
]

/** Returns a size in the vendor's notation, or `undefined` if the provider does not support it. */
const sizeOf = ({ price_by_pixels }: ImageProvider, size: string) => {
  if (Object.hasOwn(price_by_pixels, size)) {
    const [width, height] = size.split("x").map(Number)
    return { width, height }
  }
  if (size === "auto") return "square_hd"
  return Object.hasOwn(named, size) ? named[size] : undefined
}

// ---- the response ----------------------------------------------------------------------------------------------------------------

export const OpenAiImages = Schema.Struct({
  /** Unix time in seconds. */
  created: Schema.Int,
  data: Schema.Array(
    Schema.Struct({
      url: Schema.optionalWith(Schema.String, { exact: true }),
      b64_json: Schema.optionalWith(Schema.String, { exact: true })
    })
  )
}).annotations({ identifier: "OpenAiImages" })
export interface OpenAiImages extends Schema.Schema.Type<typeof OpenAiImages> {}

/** Detects an image's media type from its first bytes. Returns `undefined` unless it is PNG, JPEG or WebP. */
export const imageTypeOf = (bytes: Buffer): string | undefined => {
  if (bytes.subarray(0, 8).equals(Buffer.from("\x89PNG\r\n\x1a\n", "latin1"))) return "image/png"
  if (bytes.subarray(0, 3).equals(Buffer.from([0xff, 0xd8, 0xff]))) return "image/jpeg"
  return bytes.toString("latin1", 0, 4) === "RIFF" && bytes.toString("latin1", 8, 12) === "WEBP"
    ? "image/webp"
    : undefined
}
