/** The request that raw routes receive, with its headers and its limited body. */
import type { HttpServerRequest } from "@effect/platform"
import { Effect, Either } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Readable } from "node:stream"
import type { ReadableStream } from "node:stream/web"
import * as Body from "./Incoming.ts"
import type { BodyProblem } from "./Incoming.ts"
import { Bytes, shortMax } from "./Bytes.ts"
import type { Budget, Share } from "./Bytes.ts"
import { isOver, whenOver } from "./Closed.ts"
import { PayloadTooLarge } from "../contract/Problems.ts"

export interface Inbound {
  /**
   * The value of `X-Request-Id`, for the log; `undefined` if log lines already contain it. The fast lane annotates only individual log lines, because
   * annotating the complete request costs more than authenticating it.
   */
  readonly request_id: string | undefined
  readonly header: (name: string) => string | undefined
  readonly query: () => URLSearchParams
  /** Reads the complete body and decodes it. A body of more than `limit` bytes is rejected, even if its length was not declared. */
  readonly read: (limit: number) => Effect.Effect<Buffer, BodyProblem>
  /**
   * Reads the decoded body as a stream of up to `limit` bytes, for writing to disk. The stream fails with a `BodyProblem` (`bodyProblemOf`).
   * Destroying the stream discards the remaining body.
   */
  readonly stream: (limit: number) => Effect.Effect<Readable>
  /** Sets the account or network that the body counts against. Call this before the body is read. */
  readonly heldBy: (holder: string) => void
  /**
   * Provides a share of the same budget for a response. The share is released when the effect ends or, for a long response, once the client has
   * received it.
   */
  readonly withRoom: <A, E, R>(use: (room: Share) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Returns whether the body is declared to be long or does not declare its length. */
  readonly isLong: () => boolean
}

export const ofNode = (
  request: IncomingMessage,
  response: ServerResponse,
  bytes: Budget,
  request_id?: string
): Inbound => new NodeInbound(request, response, bytes, request_id)

/** The request is also its body's source, which saves an object per call. */
class NodeInbound implements Inbound, Body.Source {
  readonly request_id: string | undefined
  readonly incoming: IncomingMessage
  private readonly response: ServerResponse
  private readonly bytes: Budget
  private holder: string | undefined
  private held: Share | undefined
  /** The body, if it was read before its handler was called. */
  body: Either.Either<Buffer, BodyProblem> | undefined

  constructor(incoming: IncomingMessage, response: ServerResponse, bytes: Budget, request_id: string | undefined) {
    this.request_id = request_id
    this.incoming = incoming
    this.response = response
    this.bytes = bytes
  }

  header(name: string): string | undefined {
    const value = this.incoming.headers[name]
    return typeof value === "string" ? value : value?.[0]
  }

  query(): URLSearchParams {
    return queryOf(this.incoming.url)
  }

  read(limit: number): Effect.Effect<Buffer, BodyProblem> {
    if (this.body === undefined) return Effect.async((resume) => Body.whole(this, limit, resume))
    if (Number(this.header("content-length")) > limit) return new PayloadTooLarge()
    return Either.isRight(this.body) ? Effect.succeed(this.body.right) : this.body
  }

  stream(limit: number): Effect.Effect<Readable> {
    return Effect.sync(() => Body.streamed(this, limit))
  }

  heldBy(holder: string): void {
    this.holder = holder
  }

  withRoom<A, E, R>(use: (room: Share) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      const room = this.bytes.share(this.holder)
      return Effect.ensuring(
        use(room),
        Effect.sync(() => {
          if (room.held <= shortMax || isOver(this.response)) room.release()
          else whenOver(this.response, () => room.release())
        })
      )
    })
  }

  isLong(): boolean {
    return isLong(this)
  }

  get share(): Share {
    return (this.held ??= shareOf(this.bytes, this.response, this.holder))
  }

  get window_ms(): number {
    return this.bytes.window_ms
  }

  proceed(): void {
    Body.proceed(this.incoming)
  }

  discard(): void {
    Body.discard(this.incoming, this.bytes)
  }
}

export const withBody = (inbound: Inbound, body: Buffer): Inbound =>
  Object.assign(Object.create(inbound) as Inbound, { read: () => Effect.succeed(body) })

/** Wraps the platform's request, from any server. `open` means that the route requires no credential. */
export const ofRequest = (request: HttpServerRequest.HttpServerRequest, open = false): Effect.Effect<Inbound> =>
  Effect.map(Bytes, (budgets) => {
    const bytes = open ? budgets.open : budgets
    const node = nodeOf(request)
    if (node !== undefined) return ofNode(node.request, node.response, bytes)
    const web = request.source as Request
    const header = (name: string) => request.headers[name]
    const source = (share: Share): Body.Source => {
      // A web request without a body has no stream either.
      const incoming = web.body === null ? Readable.from([]) : Readable.fromWeb(web.body as ReadableStream)
      return {
        header,
        incoming,
        share,
        window_ms: bytes.window_ms,
        proceed: () => {},
        discard: () => incoming.destroy()
      }
    }
    let holder: string | undefined
    const released = (share: Share) => Effect.sync(() => share.release())
    // Web servers do not report the end of a response. The request body therefore counts only while it arrives, and the response only until it is
    // returned.
    return {
      request_id: undefined,
      header,
      query: () => queryOf(request.url),
      read: (limit) =>
        Effect.suspend(() => {
          const share = bytes.share(holder)
          return Effect.ensuring(
            Effect.async<Buffer, BodyProblem>((resume) => Body.whole(source(share), limit, resume)),
            released(share)
          )
        }),
      stream: (limit) =>
        Effect.sync(() => {
          const share = bytes.share(holder)
          return Body.streamed(source(share), limit).once("close", () => share.release())
        }),
      heldBy: (sender) => {
        holder = sender
      },
      withRoom: <A, E, R>(use: (room: Share) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
        Effect.suspend(() => {
          const room = bytes.share(holder)
          return Effect.ensuring(use(room), released(room))
        }),
      isLong: () => isLong({ header })
    }
  })

const queryOf = (url = ""): URLSearchParams => {
  const at = url.indexOf("?")
  return new URLSearchParams(at === -1 ? "" : url.slice(at + 1))
}

/** Returns the node request and response of a platform request, if there are any. */
export const nodeOf = (
  request: HttpServerRequest.HttpServerRequest
): { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined => {
  const source = request.source as Partial<IncomingMessage>
  if (typeof source.on !== "function") return undefined
  const { resolvedResponse } = request as unknown as { readonly resolvedResponse: ServerResponse }
  return { request: source as IncomingMessage, response: resolvedResponse }
}

/** Returns whether the client disconnected before its response was complete. */
export const isGone = (request: HttpServerRequest.HttpServerRequest): boolean => {
  const node = nodeOf(request)
  return node === undefined ? (request.source as Partial<Request>).signal?.aborted === true : isOver(node.response)
}

const isLong = (inbound: Pick<Inbound, "header">): boolean => {
  const length = inbound.header("content-length")
  return length === undefined ? inbound.header("transfer-encoding") !== undefined : Number(length) > shortMax
}

const nothing: Share = {
  held: 0,
  reserve: () => false,
  take: () => false,
  claim: () => () => {},
  become: () => {},
  release: () => {}
}

/** Creates a share for a body. It is released when the response or its connection ends. */
const shareOf = (bytes: Budget, response: ServerResponse, holder?: string): Share => {
  // The response has already ended, so its end would not be reported.
  if (isOver(response)) return nothing
  const share = bytes.share(holder)
  whenOver(response, () => share.release())
  return share
}

/**
 * Calls back once a body that is declared to be short has arrived, and never if its connection ends first. No fiber has to wait for the body, which
 * saves 5 % of a call. For all other bodies, for requests without a credential, and while many bodies are buffered, it calls back synchronously. The
 * credential is then checked before the body is read.
 */
export const afterShortBody = (
  request: IncomingMessage,
  response: ServerResponse,
  bytes: Budget,
  request_id: string,
  then: (inbound: Inbound) => void
): void => {
  const inbound = new NodeInbound(request, response, bytes, request_id)
  const { authorization, "content-encoding": encoding, "content-length": declared, expect } = request.headers
  const length = Number(declared ?? 0)
  const shows = authorization !== undefined || request.headers["x-api-key"] !== undefined
  const waits = length > 0 && length <= shortMax && shows
  if (!waits || encoding !== undefined || expect !== undefined || bytes.isTight()) return then(inbound)
  Body.whole(inbound, shortMax, (read) => {
    // The body was lost because the client disconnected.
    if (Either.isLeft(read) && request.destroyed) return
    inbound.body = read
    then(inbound)
  })
}
