/** The providers of images of the configuration file: `tools.images`. */
import { Context, Layer, Schema } from "effect"
import { UsdPer } from "../kernel/Price.ts"
import type { UnitPrice } from "../kernel/Price.ts"
import { Count, distinct, NonEmpty, readAs } from "../kernel/Setting.ts"
import { imageSizes } from "../media/Model.ts"
import { named, providerFields } from "../upstream/Provider.ts"
import type { ImageSize } from "./Image.ts"

type PricesBySize = { readonly [Size in ImageSize]: Schema.optional<Schema.Schema<UnitPrice, string | number>> }

/** A provider with a generation queue in the manner of fal. */
export const ImageProvider = readAs(
  Schema.Struct({
    ...providerFields,
    /** Where its models are below the upstream's address: from a text, and from an image. */
    endpoint: NonEmpty,
    image_to_image_endpoint: Schema.optional(NonEmpty),
    /** USD an image, unless its size has a price of its own. */
    price: Schema.propertySignature(UsdPer(1)).pipe(Schema.fromKey("usd_per_image")),
    /** The most images of one request. */
    images_max: Schema.optionalWith(Count, { default: () => 10 }),
    price_by_size: Schema.optionalWith(
      Schema.Struct(Object.fromEntries(imageSizes.map((size) => [size, Schema.optional(UsdPer(1))])) as PricesBySize),
      { default: () => ({}) }
    ).pipe(Schema.fromKey("usd_per_image_by_size"))
  }),
  named
)
export interface ImageProvider extends Schema.Schema.Type<typeof ImageProvider> {}

/** The first is asked unless a caller picks another. */
export class ImageProviders extends Context.Tag("tollgate/images/ImageProviders")<
  ImageProviders,
  ReadonlyArray<ImageProvider>
>() {
  static readonly layer = (providers: ReadonlyArray<ImageProvider>) => Layer.succeed(ImageProviders, providers)
  /** No images. */
  static readonly layerNone = Layer.succeed(ImageProviders, [])
}

export const fields = { images: Schema.optionalWith(distinct(ImageProvider), { default: () => [] }) }

export const layer = ({ images }: { readonly images: ReadonlyArray<ImageProvider> }) => ImageProviders.layer(images)
