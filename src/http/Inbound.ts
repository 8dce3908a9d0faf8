/** A request as raw routes read it: headers, the whole body up to a limit, and word when the client has gone. */
import type { HttpServerRequest } from "@effect/platform"
import { Effect, Either } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { InvalidRequest, PayloadTooLarge } from "./Problems.ts"

type Read = Effect.Effect<Buffer, PayloadTooLarge | InvalidRequest>

export interface Inbound {
  /**
   * What `X-Request-Id` says, for the log; undefined where the log knows it already. (To annotate the whole request costs more
   * than to authenticate it, so in the express lane only what is logged is annotated.)
   */
  readonly request_id: string | undefined
  readonly header: (name: string) => string | undefined
  /** What stands behind the `?`. */
  readonly query: () => URLSearchParams
  /** The body, refused above `limit` bytes, whether its length was declared or not. */
  readonly read: (limit: number) => Read
  /** Calls back once, if the client leaves before its answer is complete. */
  readonly onGone: (listener: () => void) => void
}

/** What is read and thrown away of a body that is too large, so that the refusal reaches a client that is still sending. */
const drainMax = 64 * 1024 * 1024

export const ofNode = (request: IncomingMessage, response: ServerResponse, request_id?: string): Inbound => ({
  request_id,
  header: (name) => {
    const value = request.headers[name]
    return typeof value === "string" ? value : value?.[0]
  },
  query: () => queryOf(request.url),
  read: (limit) => readNode(request, limit),
  onGone: (listener) => {
    response.once("close", () => {
      if (!response.writableFinished) listener()
    })
  }
})

/** The same for a request of the platform, whichever server it came through. */
export const ofRequest = (request: HttpServerRequest.HttpServerRequest): Inbound => {
  const node = nodeOf(request)
  if (node !== undefined) return ofNode(node.request, node.response)
  const web = request.source as Request
  return {
    request_id: undefined,
    header: (name) => request.headers[name],
    query: () => queryOf(request.url),
    read: (limit) =>
      Effect.flatMap(
        Effect.mapError(request.arrayBuffer, () => unreadable()),
        (body) => (body.byteLength > limit ? new PayloadTooLarge() : Effect.succeed(Buffer.from(body)))
      ),
    onGone: (listener) => web.signal?.addEventListener("abort", listener, { once: true })
  }
}

const queryOf = (url = ""): URLSearchParams => {
  const at = url.indexOf("?")
  return new URLSearchParams(at === -1 ? "" : url.slice(at + 1))
}

const nodeOf = (request: HttpServerRequest.HttpServerRequest) => {
  const source = request.source as Partial<IncomingMessage>
  if (typeof source.on !== "function") return undefined
  const { resolvedResponse } = request as unknown as { readonly resolvedResponse: ServerResponse }
  return { request: source as IncomingMessage, response: resolvedResponse }
}

const unreadable = () => new InvalidRequest({ error: "the request body could not be read" })

const readNode = (request: IncomingMessage, limit: number): Read =>
  Effect.async((resume) => take(request, limit, resume))

/** A body up to this long mostly comes with its head. */
const shortMax = 64 * 1024

/**
 * Calls back when a body that is declared to be short has come, and never if it does not come; at once for all others, and for
 * who shows no credential. A fiber that waits for a body has to be suspended and resumed, which is a twentieth of a call.
 */
export const afterShortBody = (inbound: Inbound, request: IncomingMessage, then: (inbound: Inbound) => void): void => {
  const length = Number(request.headers["content-length"] ?? 0)
  if (length === 0 || length > shortMax || request.headers.authorization === undefined) return then(inbound)
  take(request, shortMax, (read) => {
    // Without its body the client is gone too: there is nobody to answer.
    if (Either.isLeft(read)) return
    then({ ...inbound, read: (limit) => (length > limit ? new PayloadTooLarge() : read) })
  })
}

/** Takes the whole body in, and answers once. */
const take = (
  request: IncomingMessage,
  limit: number,
  then: (read: Either.Either<Buffer, PayloadTooLarge | InvalidRequest>) => void
): void => {
  let chunks: Array<Buffer> = []
  let size = 0
  let answered = false
  const answer = (read: Either.Either<Buffer, PayloadTooLarge | InvalidRequest>) => {
    if (answered) return
    answered = true
    then(read)
  }
  const tooLarge = () => {
    chunks = []
    request.off("data", onData).off("end", onEnd)
    // Closing at once would reset the connection before the client has read why.
    let drained = 0
    request.on("data", (chunk: Buffer) => {
      drained += chunk.length
      if (drained > drainMax) request.destroy()
    })
    answer(Either.left(new PayloadTooLarge()))
  }
  const onData = (chunk: Buffer) => {
    size += chunk.length
    if (size > limit) tooLarge()
    else chunks.push(chunk)
  }
  const onEnd = () => {
    request.off("close", onLost)
    answer(Either.right(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)))
  }
  const onLost = () => answer(Either.left(unreadable()))

  if (request.errored !== null || request.destroyed) return onLost()
  request.once("error", onLost)
  if (Number(request.headers["content-length"] ?? 0) > limit) return tooLarge()
  request.on("data", onData).once("end", onEnd).once("close", onLost)
}
