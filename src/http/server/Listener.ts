/**
 * Node's server on its port. It can listen before the service behind it is loaded: it answers then that the process is alive (`GET
 * /healthz`), and holds every other request until the service takes them. It imports nothing that takes time to load.
 *
 * Where the specification is silent:
 * - A request that is held for ten seconds is answered 503: its sender may ask another node.
 */
import { createServer } from "node:http"
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import type { Address } from "./Address.ts"
import { crossOrigin } from "../transport/CrossOrigin.ts"
import { isOver } from "../transport/Closed.ts"
import { phraseOf } from "../transport/Reason.ts"
import * as RequestId from "../transport/RequestId.ts"

/** What the service does with connections to its port. */
export interface Listeners {
  readonly request: RequestListener
  /** A request that waits to be told that its body may come. */
  readonly checkContinue: RequestListener
  readonly checkExpectation: RequestListener
  /** A request to become a tunnel. */
  readonly connect: (request: IncomingMessage, socket: Duplex) => void
  /** Bytes that are no HTTP request. */
  readonly clientError: (error: NodeJS.ErrnoException, socket: Socket) => void
}

export interface Listener {
  readonly server: Server
  /** Hands over what is held, and everything that comes from now on. */
  readonly serve: (listeners: Listeners) => void
}

const events = ["request", "checkContinue", "checkExpectation", "connect", "clientError"] as const

/** How long a request is held. */
const holdMax = 10_000

export const make = (): Listener => {
  const server = createServer({
    keepAliveTimeout: 65_000,
    headersTimeout: 20_000,
    connectionsCheckingInterval: 5_000,
    // How slowly a body may come is watched where it is read.
    requestTimeout: 0,
    // A request without a Host is a request; node would answer it in its own words.
    requireHostHeader: false
  })
  endSilent(server)
  const held = new Set<() => void>()
  const holders = events.map((event) => [event, holder(server, event, held)] as const)
  for (const [event, hold] of holders) server.on(event, hold)
  return {
    server,
    serve: (listeners) => {
      for (const [event, hold] of holders) server.off(event, hold)
      for (const event of events) server.on(event, listeners[event])
      for (const release of held) release()
      held.clear()
    }
  }
}

/** Holds the events of a kind: they happen again when they are released. */
const holder =
  (server: Server, event: (typeof events)[number], held: Set<() => void>) =>
  (first: unknown, second: unknown): void => {
    if (event === "connect" || event === "clientError") {
      held.add(() => server.emit(event, first, second))
      return
    }
    const request = first as IncomingMessage
    const response = second as ServerResponse
    if (request.method === "GET" && request.url === "/healthz") return answer(response, 200, { status: "ok" })
    const release = () => {
      clearTimeout(limit)
      if (!isOver(response)) server.emit(event, request, response)
    }
    const limit = setTimeout(() => {
      held.delete(release)
      if (!isOver(response)) {
        answer(response, 503, { error: "the service is starting, try again shortly", code: "unavailable" })
      }
    }, holdMax)
    held.add(release)
  }

/** As `Reply` sends it. */
const answer = (
  response: ServerResponse,
  status: number,
  content: { readonly error?: string; readonly status?: string; readonly code?: string }
): void => {
  const body = JSON.stringify(content)
  const phrase = content.error === undefined ? undefined : phraseOf(content.error)
  if (phrase !== undefined) response.statusMessage = phrase
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    ...crossOrigin,
    "x-request-id": RequestId.next()
  })
  response.end(body)
}

/** Ends the connections that have sent no request when the server begins to drain. */
const endSilent = (server: Server): void => {
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

// ---- ahead of the service -----------------------------------------------------------------------------------------------------

interface Prepared extends Listener {
  readonly address: Address
}

let prepared: Prepared | undefined

/** Listens ahead of the service that will `take` it. Where it cannot, the service says so when it comes to listen itself. */
export const prepare = (address: Address): Promise<void> => {
  const front = (prepared = { ...make(), address })
  const { server } = front
  return new Promise((resolve) => {
    const failed = () => {
      if (prepared === front) prepared = undefined
      resolve()
    }
    server.once("error", failed)
    server.listen(address, () => {
      server.off("error", failed)
      resolve()
    })
  })
}

/** The server of a service at this address: what was prepared for it, else one that does not listen yet. */
export const take = ({ host, port }: Address): Listener => {
  const front = prepared
  if (front === undefined || front.address.host !== host || front.address.port !== port) return make()
  prepared = undefined
  return front
}
