/** Data URIs, media types, and the vendors' names for image and document formats. */
import type { Source } from "./Conversation.ts"

/**
 * Returns the source that a URL refers to: inline data (`data:image/png;base64,...`) or a location. Returns `undefined` for data in another encoding.
 */
export const sourceOf = (url: string): Source | undefined => {
  if (!/^data:/i.test(url)) return { type: "url", url }
  const comma = url.indexOf(",")
  const [media_type, ...parameters] = url.slice(5, comma).split(";")
  if (comma === -1 || comma > 300 || parameters.at(-1)?.toLowerCase() !== "base64") return undefined
  return { type: "data", media_type: media_type === "" ? "text/plain" : media_type!, data: url.slice(comma + 1) }
}

export const urlOf = (source: Source): string =>
  source.type === "url" ? source.url : `data:${source.media_type};base64,${source.data}`

/** Bedrock's document formats, by media type. Each name is also a file extension. */
const documents: ReadonlyMap<string, string> = new Map([
  ["application/pdf", "pdf"],
  ["text/csv", "csv"],
  ["application/msword", "doc"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
  ["text/html", "html"],
  ["text/plain", "txt"],
  ["text/markdown", "md"]
])

export const documentFormat = (media_type: string): string | undefined => documents.get(media_type)

export const documentType = (format: string): string | undefined =>
  [...documents].find(([, name]) => name === format)?.[0]

const imageFormats: ReadonlyMap<string, string> = new Map([
  ["image/jpeg", "jpeg"],
  ["image/jpg", "jpeg"],
  ["image/png", "png"],
  ["image/gif", "gif"],
  ["image/webp", "webp"]
])

export const imageFormat = (media_type: string): string | undefined => imageFormats.get(media_type)

/** Returns the media type for the file extension of a URL or file name. */
export const typeByEnding = (url: string): string | undefined => {
  const ending = /\.(\w{2,4})(?:[?#]|$)/.exec(url)?.[1]?.toLowerCase()
  if (ending === undefined) return undefined
  return (ending === "jpg" ? "image/jpeg" : imageEnding(ending)) ?? documentType(ending)
}

const imageEnding = (ending: string): string | undefined =>
  imageFormats.has(`image/${ending}`) ? `image/${ending}` : undefined

/** Returns the requested image resolution, or `undefined` for `auto`, the vendors' default. */
export const detailOf = (detail: unknown): string | undefined =>
  typeof detail === "string" && detail !== "auto" ? detail : undefined
