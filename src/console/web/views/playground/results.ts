/** Reads the outputs in a media job's result. */

export interface MediaOutput {
  readonly kind: "image" | "video"
  readonly url: string
  readonly width: number | undefined
  readonly height: number | undefined
  readonly seconds: number | undefined
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

const outputsIn = (value: unknown, kind: MediaOutput["kind"]): ReadonlyArray<MediaOutput> =>
  isObject(value) && typeof value["url"] === "string" && isAddress(value["url"])
    ? [
        {
          kind,
          url: value["url"],
          width: numberOf(value["width"]),
          height: numberOf(value["height"]),
          seconds: numberOf(value["duration"])
        }
      ]
    : []

/** Returns whether a URL is safe to link to. Other schemes can run scripts. */
export const isWebAddress = (url: string): boolean => /^https?:\/\//i.test(url) && URL.canParse(url)
const isAddress = (url: string): boolean => isWebAddress(url) || /^data:(?:image|video)\//i.test(url)

/** Returns the outputs in the service's order, which corresponds to the `index` of `/v1/tools/media/content`. */
export const resultsOf = ({ images, video }: Readonly<Record<string, unknown>>): ReadonlyArray<MediaOutput> => [
  ...outputsIn(video, "video"),
  ...(Array.isArray(images) ? images.flatMap((image) => outputsIn(image, "image")) : [])
]

export const hostOf = (url: string): string => new URL(url).host
