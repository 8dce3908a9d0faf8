/** A provider's image prices by size, with separate prices for edits. */
import { Schema } from "effect"
import * as Price from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { imageSizes } from "../media/Model.ts"
import type { ImageProvider } from "./Settings.ts"

/** A price and its unit's name in charges. */
export interface ImagePrice {
  readonly price: UnitPrice
  readonly unit: "image" | "edited image"
}

type PricesOfSizes = Readonly<Record<string, UnitPrice | undefined>>

const priceIn = (prices: PricesOfSizes, size: string): UnitPrice | undefined =>
  Object.hasOwn(prices, size) ? prices[size] : undefined

/** Returns an image's price. `size` is a name or a size in pixels. If edits have no separate price, the ordinary price applies. */
export const priceOf = (provider: ImageProvider, size: string, edited: boolean): ImagePrice => {
  const { edit_price, edit_price_by_pixels, edit_price_by_size, price, price_by_pixels, price_by_size } = provider
  const own = edited
    ? (priceIn(edit_price_by_pixels, size) ?? priceIn(edit_price_by_size, size) ?? edit_price)
    : undefined
  return own === undefined
    ? { price: priceIn(price_by_pixels, size) ?? priceIn(price_by_size, size) ?? price, unit: "image" }
    : { price: own, unit: "edited image" }
}

/** Returns a provider's sizes: the named sizes, then its configured sizes in pixels. */
export const sizesOf = ({ price_by_pixels }: ImageProvider): ReadonlyArray<string> => [
  ...imageSizes,
  ...Object.keys(price_by_pixels)
]

export const isEditor = ({ edits, image_to_image_endpoint }: ImageProvider): boolean =>
  edits !== undefined || image_to_image_endpoint !== undefined

export const ImageProviderList = Schema.Struct({
  providers: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      name: Schema.String,
      description: Schema.String,
      prices: Schema.Array(
        Schema.Struct({
          size: Schema.String,
          usd_per_image: Schema.Number,
          /** The price of an edited image, if the provider supports edits. */
          usd_per_edited_image: Schema.optionalWith(Schema.Number, { exact: true })
        })
      )
    })
  )
}).annotations({ identifier: "ImageProviderList" })

const usdOf = ({ price }: ImagePrice): number => Number(Price.toDecimal(price))

export const listOf = (providers: ReadonlyArray<ImageProvider>): typeof ImageProviderList.Type => ({
  providers: providers.map((provider) => ({
    id: provider.id,
    name: provider.name,
    description: provider.description,
    prices: sizesOf(provider).map((size) => ({
      size,
      usd_per_image: usdOf(priceOf(provider, size, false)),
      ...(isEditor(provider) && { usd_per_edited_image: usdOf(priceOf(provider, size, true)) })
    }))
  }))
})
