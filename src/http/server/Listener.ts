/**
 * Node's server on its port. The server can listen before the service is loaded. Until then, it responds to `GET /healthz` and holds all other
 * requests. This module imports only modules that load fast.
 *
 * Where the specification is silent:
 * - A request that has been held for ten seconds is rejected with 503, so that its client can try another node.
 */
import { createServer } from "node:http"
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import type { Duplex } from "node:stream"
import type { Address } from "./Address.ts"
import { answer, hold } from "../transport/Held.ts"

export interface Listeners {
  readonly request: RequestListener
  /** Handles a request with `Expect: 100-continue`. */
  readonly checkContinue: RequestListener
  readonly checkExpectation: RequestListener
  readonly connect: (request: IncomingMessage, socket: Duplex) => void
  /** Handles bytes that are not a valid HTTP request. */
  readonly clientError: (error: NodeJS.ErrnoException, socket: Socket) => void
}

export interface Listener {
  readonly server: Server
  /** Where the connections come from, if the server does not listen itself. */
  readonly fed?: Fed
  /** Passes the held events and all later ones to these listeners. */
  readonly serve: (listeners: Listeners) => void
}

/** Connections that another process accepts for this one (`app/workers`). */
export interface Fed {
  /** The address at which that process listens. */
  readonly address: AddressInfo
  readonly sockets: ReadonlySet<Socket>
  /** Calls back with each new connection. */
  readonly begin: (accept: (socket: Socket) => void) => void
  /** Accepts no more connections. */
  readonly stop: () => void
}

const events = ["request", "checkContinue", "checkExpectation", "connect", "clientError"] as const

export const make = (): Listener => {
  const server = createServer({
    keepAliveTimeout: 65_000,
    headersTimeout: 20_000,
    connectionsCheckingInterval: 5_000,
    // The body reader enforces a minimum speed (`transport/Incoming`).
    requestTimeout: 0,
    // Node itself would refuse a request without a `Host` header, in its own format.
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

/** Holds events of one kind, and emits them again when they are released. */
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
    hold(held, response, () => server.emit(event, request, response))
  }

/** Closes the connections that have not sent a request when the server begins to drain. */
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

// ---- before the service is loaded -----------------------------------------------------------------------------------------------------

interface Prepared extends Listener {
  readonly address: Address
}

let prepared: Prepared | undefined

/**
 * Listens before the service is loaded. The service later takes the server with `take`. An error is ignored here, because the service's own attempt
 * to listen reports it.
 */
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

/** Makes the next `take` return a server that does not listen, but gets its connections from another process. */
export const prepareFed = (fed: Fed, address: Address): void => {
  prepared = { ...make(), fed, address }
}

/** Returns the prepared server for this address, or a new one that does not listen yet. */
export const take = ({ host, port }: Address): Listener => {
  const front = prepared
  if (front === undefined || front.address.host !== host || front.address.port !== port) return make()
  prepared = undefined
  return front
}
