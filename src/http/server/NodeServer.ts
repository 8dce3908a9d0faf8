/**
 * Runs the service on node's HTTP server (`Listener`), with the fast lane first, the platform's router for all other requests, and a lossless
 * shutdown.
 *
 * Where the specification is silent:
 * - Paths are exact and case-sensitive. A request without a `Host` header or with an unknown expectation is served like any other request.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer } from "effect"
import type { RequestListener, Server, ServerResponse } from "node:http"
import type { AddressInfo, Server as NetServer, Socket } from "node:net"
import type { Duplex } from "node:stream"
import type { Address } from "./Address.ts"
import { crossOrigin } from "../transport/CrossOrigin.ts"
import { Face } from "../lanes/Face.ts"
import type { FaceContract } from "../lanes/Face.ts"
import * as FastLane from "../lanes/FastLane.ts"
import * as Listener from "./Listener.ts"
import { awaitsContinue } from "../transport/Incoming.ts"
import { HeadTooLong, HeadTooSlow, MethodNotAllowed, PayloadTooLarge } from "../contract/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { phraseOf } from "../transport/Reason.ts"
import * as RequestId from "../transport/RequestId.ts"
import { endUnread, Unread } from "./Unread.ts"
import { write } from "../../kernel/Decimal.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"

/** The address and URL at which the service listens. */
export class Listening extends Context.Tag("tollgate/Listening")<
  Listening,
  { readonly host: string; readonly port: number; readonly url: string }
>() {}

export interface ListenFailed {
  readonly _tag: "ListenFailed"
  readonly message: string
}

/** How long a shutdown waits for responses in progress, in milliseconds. */
const drainLimit = 30_000

export const layer = (options: Address) =>
  Layer.unwrapEffect(
    Effect.map(Effect.flatMap(Face, listenerOf), (request) => layerServing(options, { request, onReplaced: () => {} }))
  )

/** Serves the requests of an application (`Face`), with the lane first. */
export const listenerOf = ({ app, lane }: FaceContract): Effect.Effect<RequestListener> =>
  Effect.map(NodeHttpServer.makeHandler(app), (otherwise) => FastLane.before(lane, otherwise))

/** The request listener of services that a reload can replace. */
export interface Serving {
  readonly request: RequestListener
  readonly onReplaced: (then: () => void) => void
}

export const layerServing = (options: Address, { onReplaced, request: serve }: Serving) =>
  Layer.scoped(
    Listening,
    Effect.gen(function* () {
      const front = yield* Effect.acquireRelease(
        Effect.sync(() => Listener.take(options)),
        ({ fed, server }) => (fed === undefined ? close(server) : closeFed(server, fed))
      )
      endUnread(front.server, yield* Unread)
      onReplaced(() => front.server.emit("replaced"))
      const { fed } = front
      const address = fed === undefined ? yield* listen(front.server, options) : fed.address
      front.serve({
        request: serve,
        checkContinue: (request, response) => {
          awaitsContinue(request, response)
          // A pipelined request must wait for the earlier responses. Otherwise, node would send its `100 Continue` in the middle of an earlier
          // response.
          if (response.socket === null) response.once("socket", () => serve(request, response))
          else serve(request, response)
        },
        // Ignore all other expectations.
        checkExpectation: serve,
        connect: refuseTunnel,
        clientError: refuseBytes
      })
      if (fed !== undefined) feed(front.server, fed)
      return listeningAt(address)
    })
  )

export const listeningAt = ({ address, family, port }: AddressInfo): Listening["Type"] => {
  const host = family === "IPv6" ? `[${address}]` : address
  return { host: address, port, url: `http://${host}:${port}` }
}

/** Listens on the address. Yields the actual address. If `options` has port 0, the operating system chooses the port. */
export const listen = (server: NetServer, options: Address) =>
  Effect.async<AddressInfo, ListenFailed>((resume) => {
    if (server.listening) return resume(Effect.succeed(server.address() as AddressInfo))
    const failed = (error: NodeJS.ErrnoException) =>
      resume(
        Effect.fail({
          _tag: "ListenFailed",
          message:
            error.code === "EADDRINUSE"
              ? `PORT: ${options.port} on ${options.host} is in use by another process; set PORT to a free one`
              : `HOST, PORT: cannot listen on ${options.host}:${options.port} (${error.code ?? error.message})`
        })
      )
    server.once("error", failed)
    server.listen(options, () => {
      server.off("error", failed)
      resume(Effect.succeed(server.address() as AddressInfo))
    })
  })

/**
 * Stops accepting connections, lets requests in progress finish, and closes each connection once it is idle. Unlike in node, a connection that has
 * not sent anything yet counts as idle, because browsers open connections in advance.
 */
const close = (server: Server): Effect.Effect<void> =>
  Effect.async((resume) => {
    if (!server.listening) return resume(Effect.void)
    const idle = setInterval(() => server.closeIdleConnections(), 50)
    const limit = setTimeout(() => server.closeAllConnections(), drainLimit)
    server.close(() => {
      clearInterval(idle)
      clearTimeout(limit)
      resume(Effect.void)
    })
    server.emit("draining")
  })

/** Serves connections that another process has accepted. */
const feed = (server: Server, fed: Listener.Fed): void => {
  // Node limits the time for a request's head, and finds idle connections, only for servers that it believes to be listening.
  server.emit("listening")
  fed.begin((socket) => server.emit("connection", socket))
}

/** Works like `close`, for connections that another process has accepted. Node does not count these connections, so this function waits for them. */
const closeFed = (server: Server, fed: Listener.Fed): Effect.Effect<void> =>
  Effect.async((resume) => {
    fed.stop()
    const limit = setTimeout(() => server.closeAllConnections(), drainLimit)
    const idle = setInterval(() => {
      server.closeIdleConnections()
      if (fed.sockets.size > 0) return
      clearInterval(idle)
      clearTimeout(limit)
      // Ends the server's timer. The callback gets an error, because the server was not listening.
      server.close(() => resume(Effect.void))
    }, 50)
    server.emit("draining")
  })

/** Refuses bytes that are not an HTTP request, with the common headers. */
const refuseBytes = (error: NodeJS.ErrnoException, socket: Socket): void => {
  const under = underWay(socket)
  if (!socket.writable || error.code === "ECONNRESET" || under?.headersSent === true) {
    socket.destroy()
    return
  }
  // A complete request came first. Send its response before closing, because the client would mistake any other response for it.
  if (under?.req.complete === true) {
    under.shouldKeepAlive = false
    return
  }
  end(socket, refusals[error.code ?? ""]?.() ?? notHttp())
}

/** Returns the next pending response on a connection. Node exposes it only through this field. */
const underWay = (socket: Socket): ServerResponse | undefined =>
  (socket as { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? undefined

const notHttp = () =>
  new InvalidRequest({ message: "this is not an HTTP request", field: "", rule: "must be an HTTP/1.1 request" })

const refusals: Readonly<Record<string, () => ProblemInstance<string>>> = {
  HPE_HEADER_OVERFLOW: () => new HeadTooLong(),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: () => new PayloadTooLarge(),
  ERR_HTTP_REQUEST_TIMEOUT: () => new HeadTooSlow()
}

/** Refuses a CONNECT request, because this server is not a proxy. */
const refuseTunnel = (_request: unknown, socket: Duplex): void => end(socket, new MethodNotAllowed())

const end = (socket: Duplex, problem: ProblemInstance<string>): void => {
  const body = write(problem.body)
  const headers = {
    ...crossOrigin,
    "x-request-id": RequestId.next(),
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    connection: "close"
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  socket.end([`HTTP/1.1 ${problem.status} ${phraseOf(problem.body.error) ?? ""}`, ...lines, "", body].join("\r\n"))
}
