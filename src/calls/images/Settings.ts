/** The configuration section `tools.images`. */
import { Context, Layer, Schema } from "effect"
import { UsdPer } from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { Count, distinct, NonEmpty, readAs } from "../../kernel/Setting.ts"
import { imageSizes } from "../media/Model.ts"
import { named, providerFields } from "../../upstream/models/Provider.ts"
import { OutputFormat } from "./Image.ts"
import type { ImageSize } from "./Image.ts"

type BySize = { readonly [Size in ImageSize]: Schema.optional<Schema.Schema<UnitPrice, string | number>> }

/** Width and height in pixels, such as `1536x1024`. */
const Pixels = Schema.String.pipe(
  Schema.pattern(/^[1-9]\d{1,4}x[1-9]\d{1,4}$/, { message: () => "must be a size in pixels such as 1536x1024" })
)

const pricesBySize = Schema.optionalWith(
  Schema.Struct(Object.fromEntries(imageSizes.map((size) => [size, Schema.optional(UsdPer(1))])) as BySize),
  { default: () => ({}) }
)
const pricesByPixels = Schema.optionalWith(Schema.Record({ key: Pixels, value: UsdPer(1) }), { default: () => ({}) })

/** A provider with a generation queue like fal's. */
export const ImageProvider = readAs(
  Schema.Struct({
    ...providerFields,
    /** The model paths below the upstream's address. `endpoint` generates from text, `image_to_image_endpoint` from an image. */
    endpoint: NonEmpty,
    image_to_image_endpoint: Schema.optional(NonEmpty),
    /** USD per image. A price for the size takes precedence. */
    price: Schema.propertySignature(UsdPer(1)).pipe(Schema.fromKey("usd_per_image")),
    images_max: Schema.optionalWith(Count, { default: () => 10 }),
    price_by_size: pricesBySize.pipe(Schema.fromKey("usd_per_image_by_size")),
    /** Prices of additional sizes, in pixels: `{ "1536x1024": "0.06" }`. */
    price_by_pixels: pricesByPixels.pipe(Schema.fromKey("usd_per_image_by_pixels")),
    /**
     * USD per image generated from other images, by an edit or a request with a source. A price for its size takes precedence. If neither is
     * configured, the ordinary price of its size applies.
     */
    edit_price: Schema.optionalWith(Schema.UndefinedOr(UsdPer(1)), { default: () => undefined }).pipe(
      Schema.fromKey("usd_per_edited_image")
    ),
    edit_price_by_size: pricesBySize.pipe(Schema.fromKey("usd_per_edited_image_by_size")),
    edit_price_by_pixels: pricesByPixels.pipe(Schema.fromKey("usd_per_edited_image_by_pixels")),
    /** The formats that callers may choose. If the array is empty, the vendor chooses. */
    output_formats: Schema.optionalWith(Schema.Array(OutputFormat), { default: () => [] }),
    /** The model for edits. Without it, edits use `image_to_image_endpoint` with one image and no mask. */
    edits: Schema.optional(
      Schema.Struct({
        endpoint: NonEmpty,
        /** The maximum number of source images. One image is sent as `image_url`, several as `image_urls`. */
        images_max: Schema.optionalWith(Count, { default: () => 1 }),
        /** Whether the model accepts a mask, as `mask_url`. */
        mask: Schema.optionalWith(Schema.Boolean, { default: () => false })
      })
    ),
    /** Other names for the model on OpenAI's path. */
    aliases: Schema.optionalWith(Schema.Array(NonEmpty), { default: () => [] })
  }),
  named
)
export interface ImageProvider extends Schema.Schema.Type<typeof ImageProvider> {}

/** The configured image providers. The first is the default. */
export class ImageProviders extends Context.Tag("tollgate/images/ImageProviders")<
  ImageProviders,
  ReadonlyArray<ImageProvider>
>() {
  static readonly layer = (providers: ReadonlyArray<ImageProvider>) => Layer.succeed(ImageProviders, providers)
  static readonly layerNone = Layer.succeed(ImageProviders, [])
}

export const fields = { images: Schema.optionalWith(distinct(ImageProvider), { default: () => [] }) }

export const layer = ({ images }: { readonly images: ReadonlyArray<ImageProvider> }) => ImageProviders.layer(images)
