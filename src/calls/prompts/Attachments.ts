/**
 * Finds a prompt's attachments and bounds their tokens. The rules are the same in all client protocols.
 *
 * Where the specification is silent:
 * - Text, MP3 audio and uncompressed WAV audio count as one token per byte. Any other file counts as the model's complete context, because a few
 *   kilobytes can contain a hundred-page PDF or an hour of silence in FLAC.
 * - The service reads a file's type from its bytes, because a vendor may ignore the declared type.
 */
import { isUtf8 } from "node:buffer"
import { bytesASecond, bytesASecondOf, isMp3, tagBytesOf } from "../../kernel/AudioForm.ts"

import { inAnyCase } from "./Extras.ts"

export interface Attached {
  count: number
  /** The total size of the images' data, in bytes. Image URLs do not count. */
  bytes: number
  /** The first field that refers to one of the vendor's objects by id. */
  by_id: string | undefined
  /** Whether an attachment may fill the complete context, because its bytes do not bound its tokens. */
  elsewhere: boolean
}

export const nothingAttached = (): Attached => ({ count: 0, bytes: 0, by_id: undefined, elsewhere: false })

const fileIds: ReadonlySet<string> = new Set(["file_id", "file_ids"])

/** Records whether a part refers to a file by id, even in a nested object. Some upstreams ignore the case of field names. */
export const noteFiles = (attached: Attached, part: object): void => {
  const names = Object.entries(part).some(
    ([name, value]) =>
      (fileIds.has(inAnyCase(name)) && (value ?? null) !== null) ||
      (typeof value === "object" &&
        value !== null &&
        Object.entries(value).some(([name, id]) => fileIds.has(inAnyCase(name)) && (id ?? null) !== null))
  )
  if (names) attached.by_id ??= "file_id"
}

const head = 100

/** Returns whether the type is an image. Some vendors accept a document instead of an image. */
const isImage = (media_type: string): boolean => /^image\//i.test(media_type)

/** Returns whether the type is a video. A video's bytes do not bound its tokens, because most frames take few bytes. */
const isVideo = (media_type: string): boolean => /^video\//i.test(media_type)

/** Returns the media type of a data URI, or `undefined` for any other string. */
const mediaTypeOf = (text: string): string | undefined => /^\s*data:([^;,]*)/i.exec(text.slice(0, head))?.[1]?.trim()

/** Returns whether the string is a URL. Some vendors accept a URL instead of a file's bytes. */
const isUrl = (text: string): boolean => /^\s*[a-z][a-z\d+.-]*:/i.test(text.slice(0, head))

/** Adds an image given as a URL or data URI. */
export const addImage = (attached: Attached, url: unknown): void => {
  attached.count++
  if (typeof url !== "string") attached.elsewhere = true
  else countImage(attached, mediaTypeOf(url), url)
}

export const addImageData = (attached: Attached, media_type: unknown, data: string): void => {
  attached.count++
  countImage(attached, typeof media_type === "string" ? media_type : "", data)
}

const countImage = (attached: Attached, media_type: string | undefined, data: string): void => {
  if (media_type === undefined || isImage(media_type)) attached.bytes += data.length
  else if (isVideo(media_type) || !isBounded(data)) attached.elsewhere = true
}

/** Adds audio or a file, given as base64 or a data URI. */
export const addData = (attached: Attached, data: unknown, media_type?: unknown): void => {
  attached.count++
  if (typeof data !== "string") attached.elsewhere = true
  else {
    const type = mediaTypeOf(data)
    const isElsewhere = type === undefined ? isUrl(data) || isVideo(String(media_type)) : isVideo(type)
    if (isElsewhere || !isBounded(data)) attached.elsewhere = true
  }
}

/** The number of bytes to read to determine a file's type. */
const sniffedBytes = 1_024

/** Returns whether a file's bytes bound its tokens. */
const isBounded = (data: string): boolean => {
  const from = mediaTypeOf(data) === undefined ? 0 : data.indexOf(",") + 1
  const head = decoded(data, from, 0, sniffedBytes)
  // Many PDF readers skip bytes before `%PDF-`, so a PDF can look like audio at its start.
  if (head.includes("%PDF-")) return false
  const tag = tagBytesOf(head)
  if (isMp3(tag === 0 ? head : decoded(data, from, tag, sniffedBytes))) return true
  if (bytesASecondOf(head) >= bytesASecond) return true
  return isText(head.subarray(0, -4)) && isText(Buffer.from(data.slice(from), "base64"))
}

/** Decodes about `length` bytes of a file, starting at its byte `at`. The file's base64 begins at index `from` of `data`. */
const decoded = (data: string, from: number, at: number, length: number): Buffer => {
  const skipped = at % 3
  const start = from + ((at - skipped) / 3) * 4
  return Buffer.from(data.slice(start, start + Math.ceil((length + skipped) / 3) * 4), "base64").subarray(skipped)
}

/** Returns whether the bytes are text. Text contains neither NUL nor a PDF signature. */
const isText = (bytes: Buffer): boolean => isUtf8(bytes) && !bytes.includes(0) && !bytes.includes("%PDF-")
