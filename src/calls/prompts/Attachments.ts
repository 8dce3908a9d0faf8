/**
 * The attachments of a prompt, and how far their bytes bound their tokens. It is the same in all protocols of clients.
 *
 * Where the specification is silent:
 * - A text has at most a token for each of its bytes. So has audio in MP3, and in WAV with plain samples. Any other file counts the whole
 *   context: a PDF holds a hundred pages in a few kilobytes, and FLAC an hour of silence.
 * - The bytes of a file say what it is, since a vendor may go by them and not by the name that the client gives it.
 */
import { isUtf8 } from "node:buffer"
import { bytesASecond, bytesASecondOf, isMp3, tagBytesOf } from "../../kernel/AudioForm.ts"

import { inAnyCase } from "./Extras.ts"

/** The attachments, in the order in which they are found. */
export interface Attached {
  count: number
  /** Of the images among them. */
  bytes: number
  /** The field that names by its id what the vendor keeps. */
  by_id: string | undefined
  /** Something may be as long as the model can read: its bytes say nothing of its tokens. */
  elsewhere: boolean
}

export const nothingAttached = (): Attached => ({ count: 0, bytes: 0, by_id: undefined, elsewhere: false })

const fileIds: ReadonlySet<string> = new Set(["file_id", "file_ids"])

/** Notes whether a part names a file by its id, in itself or in the object that it holds. Some upstreams read names in any case. */
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

/** Some vendors read a document where an image is expected. */
const isImage = (media_type: string): boolean => /^image\//i.test(media_type)

/** A film has no bytes of its own for most of its pictures. */
const isFilm = (media_type: string): boolean => /^video\//i.test(media_type)

/** The media type of a data address; `undefined` for any other text. */
const mediaTypeOf = (text: string): string | undefined => /^\s*data:([^;,]*)/i.exec(text.slice(0, head))?.[1]?.trim()

/** Some vendors take an address where the bytes of a file are expected. */
const isAddress = (text: string): boolean => /^\s*[a-z][a-z\d+.-]*:/i.test(text.slice(0, head))

/** An image at an address, which may hold its data: it has no more tokens than the model's configuration says. */
export const addImage = (attached: Attached, url: unknown): void => {
  attached.count++
  if (typeof url !== "string") attached.elsewhere = true
  else countImage(attached, mediaTypeOf(url), url)
}

/** An image as base64. */
export const addImageData = (attached: Attached, media_type: unknown, data: string): void => {
  attached.count++
  countImage(attached, typeof media_type === "string" ? media_type : "", data)
}

const countImage = (attached: Attached, media_type: string | undefined, data: string): void => {
  if (media_type === undefined || isImage(media_type)) attached.bytes += data.length
  else if (isFilm(media_type) || !isBounded(data)) attached.elsewhere = true
}

/** Audio or a file, as base64 or in a data address. */
export const addData = (attached: Attached, data: unknown, media_type?: unknown): void => {
  attached.count++
  if (typeof data !== "string") attached.elsewhere = true
  else {
    const type = mediaTypeOf(data)
    const isElsewhere = type === undefined ? isAddress(data) || isFilm(String(media_type)) : isFilm(type)
    if (isElsewhere || !isBounded(data)) attached.elsewhere = true
  }
}

/** How much of a file says what it is. */
const sniffed = 1_024

/** Whether the bytes of a file bound its tokens. */
const isBounded = (data: string): boolean => {
  const from = mediaTypeOf(data) === undefined ? 0 : data.indexOf(",") + 1
  const head = decoded(data, from, 0, sniffed)
  // Many readers of PDF accept bytes before `%PDF-`, so a file may begin as audio and still be a PDF.
  if (head.includes("%PDF-")) return false
  const tag = tagBytesOf(head)
  if (isMp3(tag === 0 ? head : decoded(data, from, tag, sniffed))) return true
  if (bytesASecondOf(head) >= bytesASecond) return true
  return isText(head.subarray(0, -4)) && isText(Buffer.from(data.slice(from), "base64"))
}

/** Bytes of base64 that begins at `from`, as many as asked for or a few less or more. */
const decoded = (data: string, from: number, at: number, length: number): Buffer => {
  const skipped = at % 3
  const start = from + ((at - skipped) / 3) * 4
  return Buffer.from(data.slice(start, start + Math.ceil((length + skipped) / 3) * 4), "base64").subarray(skipped)
}

/** A text has no NUL. A PDF may be written without one, but it says its name. */
const isText = (bytes: Buffer): boolean => isUtf8(bytes) && !bytes.includes(0) && !bytes.includes("%PDF-")
