/**
 * The service on node's HTTP server: the express lane first, the platform's router for everything else, and a way to stop that
 * loses nothing. The only file that opens a port.
 */
import { HttpApiBuilder } from "@effect/platform"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer } from "effect"
import { createServer } from "node:http"
import type { Server as NodeServer } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { Express, lane } from "./http/Express.ts"
import { Observer } from "./http/Frame.ts"
import { InvalidRequest } from "./http/Problems.ts"

/** Where the service can be reached. */
export class Listening extends Context.Tag("tollgate/Listening")<
  Listening,
  { readonly host: string; readonly port: number; readonly url: string }
>() {}

/** The address could not be taken. */
export interface ListenFailed {
  readonly _tag: "ListenFailed"
  readonly message: string
}

/** How long a shutdown waits for answers that are under way. */
const drainLimit = 30_000

export const layer = (options: { readonly host: string; readonly port: number }) =>
  Layer.scoped(
    Listening,
    Effect.gen(function* () {
      const router = yield* NodeHttpServer.makeHandler(yield* HttpApiBuilder.httpApp)
      const express = yield* lane(yield* Express, yield* Observer)
      const server = yield* Effect.acquireRelease(
        Effect.sync(() =>
          createServer({ keepAliveTimeout: 65_000, headersTimeout: 60_000 }, (request, response) => {
            if (!express(request, response)) router(request, response)
          })
        ),
        close
      )
      server.on("clientError", refuseBytes)
      endSilent(server)
      const address = yield* listen(server, options)
      const host = address.family === "IPv6" ? `[${address.address}]` : address.address
      return { host: address.address, port: address.port, url: `http://${host}:${address.port}` }
    })
  ).pipe(
    Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer]),
    Layer.provide(NodeHttpServer.layerContext)
  )

const listen = (server: NodeServer, options: { readonly host: string; readonly port: number }) =>
  Effect.async<AddressInfo, ListenFailed>((resume) => {
    const failed = (error: NodeJS.ErrnoException) =>
      resume(
        Effect.fail({
          _tag: "ListenFailed",
          message:
            error.code === "EADDRINUSE"
              ? `PORT: ${options.port} on ${options.host} is in use by another process`
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
 * Takes no new connection, lets what is under way finish, and closes each connection as it falls idle. One that has sent nothing
 * yet (browsers open such ahead) counts as idle too, which node does not think.
 */
const close = (server: NodeServer): Effect.Effect<void> =>
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

/** Ends the connections that have sent no request when the server begins to drain. */
const endSilent = (server: NodeServer): void => {
  const silent = new Set<Socket>()
  server.on("connection", (socket) => {
    silent.add(socket)
    socket.once("close", () => silent.delete(socket))
  })
  server.on("request", ({ socket }) => silent.delete(socket))
  server.once("draining", () => {
    for (const socket of silent) socket.destroy()
  })
}

/** Bytes that are no HTTP request get an answer too. */
const refuseBytes = (error: NodeJS.ErrnoException, socket: Socket): void => {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy()
    return
  }
  const tooLong = error.code === "HPE_HEADER_OVERFLOW"
  const body = JSON.stringify(
    new InvalidRequest({ error: tooLong ? "the request's headers are too long" : "this is not an HTTP request" }).body
  )
  const head = `HTTP/1.1 ${tooLong ? "431 Request Header Fields Too Large" : "400 Bad Request"}`
  socket.end(
    `${head}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  )
}
