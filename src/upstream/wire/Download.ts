/** Downloads a file from the URL in a vendor's response, or decodes the URL if it is a data URI. Redirects are not followed. */
import { Effect, Exit, Scope } from "effect"
import { Readable } from "node:stream"
import { ByteStream, closeIfUnclaimed } from "./ByteStream.ts"
import type { Tap } from "./ByteStream.ts"
import { mayBePublic } from "./PublicAddress.ts"
import * as Wire from "./Wire.ts"

/** How long the vendor may be silent, and the maximum time from the request to the last byte, in milliseconds. */
const silence_ms_max = 60_000
const total_ms_max = 3_600_000

const decoded = (url: string): Effect.Effect<Buffer, Wire.Unreachable> => {
  const comma = url.indexOf(",")
  return /;base64$/i.test(url.slice(0, comma))
    ? Effect.succeed(Buffer.from(url.slice(comma + 1), "base64"))
    : new Wire.Unreachable({ reason: "a data URI that is not base64" })
}

/** Fails unless the address is public or on `host`, the vendor's own host. */
const placeOf = (url: string, host: string) => {
  const address = URL.canParse(url) ? new URL(url) : undefined
  if (address === undefined || !/^https?:$/.test(address.protocol)) {
    return new Wire.Unreachable({ reason: "no address" })
  }
  const isPublic = address.host !== host
  return isPublic && !mayBePublic(address.hostname)
    ? new Wire.Unreachable({ reason: "an address that is not public" })
    : Effect.succeed({ address, options: { base_url: address.origin, silence_ms_max, total_ms_max, isPublic } })
}

/** A vendor's file, once the response head is complete. */
export interface FileDownload {
  /** The media type in lower case, without parameters; empty if the vendor sends none. */
  readonly content_type: string
  /** The length in bytes; `undefined` if the vendor does not send it. */
  readonly length: number | undefined
  /** Destroying the stream ends the download. */
  readonly body: Readable
}

const tooLong = (limit: number) => new Wire.Unreachable({ reason: `a file of more than ${limit} bytes` })

/** Opens a file of up to `limit` bytes, from a public address or from `host`, the vendor's own host. The download of a longer file is aborted. */
export const open = (url: string, host: string, limit: number): Effect.Effect<FileDownload, Wire.Unreachable> =>
  url.startsWith("data:")
    ? Effect.map(decoded(url), (bytes) => ({
        content_type: /^data:([^;,]*)/.exec(url)![1]!.toLowerCase(),
        length: bytes.length,
        body: Readable.from([bytes])
      }))
    : closeIfUnclaimed(opened(url, host, limit), ({ body }) => body)

const opened = Effect.fnUntraced(function* (url: string, host: string, limit: number) {
  const { address, options } = yield* placeOf(url, host)
  const scope = yield* Scope.make()
  return yield* Scope.extend(Wire.make(options), scope).pipe(
    Effect.flatMap((wire) => wire.open({ method: "GET", path: address.pathname + address.search, headers: {} })),
    Effect.flatMap((streaming) => coming(streaming, limit, Scope.close(scope, Exit.void))),
    Effect.onError(() => Scope.close(scope, Exit.void))
  )
})

const coming = Effect.fnUntraced(function* (streaming: Wire.Streaming, limit: number, close: Effect.Effect<void>) {
  const { headers, status } = streaming
  const length = Wire.header(headers, "content-length")
  const encoding = Wire.header(headers, "content-encoding") ?? "identity"
  const no =
    status !== 200
      ? new Wire.Unreachable({ reason: `status ${status}` })
      : encoding !== "identity"
        ? new Wire.Unreachable({ reason: `a file in ${encoding}` })
        : Number(length ?? 0) > limit
          ? tooLong(limit)
          : undefined
  if (no !== undefined) {
    streaming.abort()
    return yield* no
  }
  const bytes = new ByteStream(streaming, { read_on: 0, tap: upTo(limit) })
  yield* bytes.ended.pipe(
    Effect.tap((how) =>
      Effect.sync(() => (how === "complete" ? bytes.finish() : bytes.cut("the download ended early")))
    ),
    Effect.zipRight(close),
    Effect.forkDaemon
  )
  return {
    content_type: (Wire.header(headers, "content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase(),
    length: length === undefined ? undefined : Number(length),
    body: bytes.body
  } satisfies FileDownload
})

const upTo = (limit: number): Tap => {
  let size = 0
  return {
    data: (chunk, stream) => {
      size += chunk.length
      if (size <= limit) return stream.pass(chunk)
      stream.end("broken")
      stream.abort()
    }
  }
}
