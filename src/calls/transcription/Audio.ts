/** A call's audio, and the upstream's form. The form is generated while the audio is read. */
import { createReadStream } from "node:fs"
import { Readable } from "node:stream"
import { tagBytesOf } from "../../kernel/AudioForm.ts"
import { framesOf } from "./Frames.ts"

/**
 * An audio file: bytes, a file on disk, or a stream. A file or stream must be exactly `length` bytes long. A stream is read only once, when it is
 * sent. Its duration is unknown until then, so at least the model's `max_seconds` is reserved.
 */
export type Audio = {
  /** The file name. Many providers derive the format from its extension (`a.wav`). */
  readonly name: string
  readonly content_type: string
} & (
  | { readonly bytes: Uint8Array }
  | { readonly path: string; readonly length: number }
  | { readonly stream: Readable; readonly length: number }
)

export const lengthInBytes = (audio: Audio): number => ("bytes" in audio ? audio.bytes.length : audio.length)

/** The maximum number of tags before the audio. Most files have one. */
const tagsMax = 4

/** Computes the audio's duration from its frames, in seconds. The result is infinite for a stream or if the frames cannot be counted. */
export const secondsIn = async (audio: Audio): Promise<number> => {
  let start = 0
  for (let tags = 0; tags <= tagsMax; tags++) {
    let tag = 0
    let frames: ReturnType<typeof framesOf>
    for await (const chunk of chunksOf(audio, start)) {
      if (frames === undefined) {
        tag = tagBytesOf(chunk)
        if (tag > 0) break
        frames = framesOf(chunk)
        if (frames === undefined) break
      }
      frames.take(chunk)
    }
    if (tag === 0) return frames?.seconds() ?? Number.POSITIVE_INFINITY
    start += tag
  }
  return Number.POSITIVE_INFINITY
}

const chunksOf = (audio: Audio, start: number): Iterable<Buffer> | AsyncIterable<Buffer> => {
  if ("stream" in audio) return []
  if ("path" in audio) return createReadStream(audio.path, { start })
  const { buffer, byteLength, byteOffset } = audio.bytes
  return start < byteLength ? [Buffer.from(buffer, byteOffset + start, byteLength - start)] : []
}

/** Destroys the audio's stream, if there is one. */
export const release = (audio: Audio): void => {
  if ("stream" in audio) audio.stream.destroy()
}

/** Builds the form: the fields, then the file. A field with several values is repeated. */
export const formOf = (
  audio: Audio,
  fields: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>,
  boundary: string
): { readonly body: Readable; readonly length: number } => {
  const { content_type, name } = audio
  const quoted = (text: string) => text.replace(/["\r\n]/g, (one) => encodeURIComponent(one))
  const head = Buffer.from(
    Object.entries(fields)
      .flatMap(([key, value = []]) =>
        [value].flat().map((one) => `--${boundary}\r\ncontent-disposition: form-data; name="${key}"\r\n\r\n${one}\r\n`)
      )
      .join("") +
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${quoted(name)}"\r\n` +
      `content-type: ${/^[\w.+-]+\/[\w.+-]+$/.test(content_type) ? content_type : "application/octet-stream"}\r\n\r\n`
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    body: Readable.from(parts(head, audio, tail), { objectMode: false }),
    length: head.length + lengthInBytes(audio) + tail.length
  }
}

async function* parts(head: Buffer, audio: Audio, tail: Buffer): AsyncGenerator<Uint8Array> {
  yield head
  if ("bytes" in audio) yield audio.bytes
  else for await (const chunk of "path" in audio ? createReadStream(audio.path) : audio.stream) yield chunk as Buffer
  yield tail
}
