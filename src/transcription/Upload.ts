/** An uploaded audio file: it lies on disk while the call lasts, and is never whole in memory. */
import type { HttpServerRequest, Path } from "@effect/platform"
import { FileSystem, Multipart } from "@effect/platform"
import { Effect, Either, Option, Schema } from "effect"
import type { Scope } from "effect"
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import type { IncomingMessage } from "node:http"
import { Readable } from "node:stream"
import { refused } from "../http/Body.ts"
import { InvalidRequest } from "../http/Problems.ts"
import { AudioTooLarge } from "./Problems.ts"
import { fileBytesMax, TranscriptionFields } from "./Transcription.ts"

export interface Upload {
  readonly fields: TranscriptionFields
  readonly path: string
  readonly name: string
  readonly content_type: string
  readonly bytes: number
  /** Of the file and the fields together. */
  readonly fingerprint: string
}

/** Room for the form around the file. */
const formBytesMax = 1024 * 1024

/** Reads the form onto the disk; the file goes with the scope. */
export const receive = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<Upload, InvalidRequest | AudioTooLarge, Scope.Scope | FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    if (!request.headers["content-type"]?.startsWith("multipart/form-data")) {
      return yield* new InvalidRequest({ error: "the request is not multipart/form-data" })
    }
    if (Number(request.headers["content-length"] ?? 0) > fileBytesMax + formBytesMax) {
      drain(request)
      return yield* new AudioTooLarge()
    }
    const form = yield* request.multipart.pipe(
      // The part's own headers count there; the file itself is measured once it is on the disk.
      Multipart.withMaxFileSize(Option.some(fileBytesMax + 64 * 1024)),
      Multipart.withMaxFieldSize(64 * 1024),
      Multipart.withMaxParts(Option.some(32)),
      Effect.mapError((error) => {
        drain(request)
        return isTooLarge(error) ? new AudioTooLarge() : unreadable
      }),
      Effect.raceFirst(endedShort(request))
    )
    const { file, ...texts } = form
    const audio = Array.isArray(file) ? file[0] : undefined
    if (audio === undefined || typeof audio === "string") {
      return yield* new InvalidRequest({
        error: "file: required, the audio file",
        details: { field: "file", rule: "an audio file" }
      })
    }
    const fields = yield* Either.mapLeft(readFields(texts), refused)
    const files = yield* FileSystem.FileSystem
    const { size } = yield* Effect.orDie(files.stat(audio.path))
    const bytes = Number(size)
    if (bytes > fileBytesMax) return yield* new AudioTooLarge()
    if (bytes === 0) {
      return yield* new InvalidRequest({ error: "file: it is empty", details: { field: "file", rule: "not empty" } })
    }
    const hash = createHash("sha256").update(JSON.stringify(fields))
    yield* Effect.promise(async () => {
      for await (const chunk of createReadStream(audio.path)) hash.update(chunk as Buffer)
    })
    return {
      fields,
      path: audio.path,
      name: audio.name,
      content_type: audio.contentType,
      bytes,
      fingerprint: hash.digest("hex")
    }
  })

const unreadable = new InvalidRequest({ error: "the form could not be read" })

/** The parser's own limits come as faults of another kind, with the limit in their cause. */
const isTooLarge = ({ cause, reason }: Multipart.MultipartError): boolean =>
  reason === "FileTooLarge" || reason === "BodyTooLarge" || /ReachedLimit.*(PartSize|TotalSize)/.test(String(cause))

/** How long the parser may take with what is left once the body is over. */
const patience = 5_000

/** Fails when the body ended and the form did not: the parser waits for the rest of it for ever. */
const endedShort = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<never, InvalidRequest> =>
  Effect.async((resume) => {
    const source = request.source as Partial<IncomingMessage>
    let timer: NodeJS.Timeout | undefined
    const over = () => {
      timer ??= setTimeout(() => resume(unreadable), patience)
    }
    source.once?.("end", over)
    source.once?.("close", over)
    return Effect.sync(() => {
      clearTimeout(timer)
      source.off?.("end", over)
      source.off?.("close", over)
    })
  })

const readFields = Schema.decodeUnknownEither(TranscriptionFields)

/** What is still coming is thrown away, so that the refusal reaches a client that is still sending. */
const drain = (request: HttpServerRequest.HttpServerRequest): void => {
  const source = request.source as Partial<IncomingMessage>
  source.resume?.()
}

/** The form for the upstream, made as it is read: the fields, then the file from the disk. */
export const formOf = (
  { bytes, content_type, name, path }: Upload,
  fields: Readonly<Record<string, string | undefined>>,
  boundary: string
): { readonly body: Readable; readonly length: number } => {
  const quoted = (text: string) => text.replace(/["\r\n]/g, (one) => encodeURIComponent(one))
  const head = Buffer.from(
    Object.entries(fields)
      .flatMap(([key, value]) =>
        value === undefined
          ? []
          : [`--${boundary}\r\ncontent-disposition: form-data; name="${key}"\r\n\r\n${value}\r\n`]
      )
      .join("") +
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${quoted(name)}"\r\n` +
      `content-type: ${/^[\w.+-]+\/[\w.+-]+$/.test(content_type) ? content_type : "application/octet-stream"}\r\n\r\n`
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    body: Readable.from(parts(head, path, tail), { objectMode: false }),
    length: head.length + bytes + tail.length
  }
}

async function* parts(head: Buffer, path: string, tail: Buffer): AsyncGenerator<Buffer> {
  yield head
  for await (const chunk of createReadStream(path)) yield chunk as Buffer
  yield tail
}
