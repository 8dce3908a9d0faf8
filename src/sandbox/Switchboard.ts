/**
 * The sandbox's HTTP server. It finds a request's route, records the call, applies a fault and responds. It uses plain Node, because faults violate
 * HTTP. Its own errors are JSON.
 */
import { Effect } from "effect"
import type { Scope } from "effect"
import { createServer } from "node:http"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { Duplex } from "node:stream"
import type { Calls } from "./Calls.ts"
import { deliver } from "./Delivery.ts"
import { answerOf } from "./Faults.ts"
import type { Faults } from "./Faults.ts"
import { json, Refusal } from "./Outside.ts"
import type { Answer, Received, Route, SandboxFailed } from "./Outside.ts"
import type { ServiceName } from "./World.ts"

/** The maximum size of an accepted body, in bytes. */
export const bodyBytesMax = 32 * 1024 * 1024
/** How long closing waits for open requests, in milliseconds. */
const closeTimeout = 1_000

export interface Switchboard {
  /** The address: `http://127.0.0.1:PORT`. */
  readonly origin: string
  /** Adds routes. Calls to them are recorded and get the service's faults. Without a service, the routes are levers. */
  readonly plug: (routes: ReadonlyArray<Route>, service?: ServiceName) => void
}

interface Options {
  readonly port: number
  readonly calls: Calls
  readonly faults: Faults
}

export const make = ({ calls, faults, port }: Options): Effect.Effect<Switchboard, SandboxFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const plugs = directory()

    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      if (isPageHere(request.headers.origin)) {
        response.setHeader("access-control-allow-origin", request.headers.origin!)
        if (request.method === "OPTIONS") return deliver(response, preflight, {}, () => {})
      }
      const found = plugs.find(request.method ?? "", request.url ?? "/")
      const body = await read(request)
      if (body === undefined) {
        if (!response.destroyed) await deliver(response, tooLarge, {}, () => {})
        return
      }
      if ("refusal" in found) return deliver(response, found.refusal, {}, () => {})
      const { params, path, query, route, service } = found
      const received = { path, query: new URLSearchParams(query), headers: request.headers, params, body }
      if (service === undefined) return deliver(response, await answered(route, received), {}, () => {})

      const call = calls.note(service, query === "" ? path : `${path}?${query}`, body)
      let ours = false
      const hangUp = () => {
        ours = true
        request.socket.destroySoon()
      }
      response.once("close", () => {
        if (!ours && !response.writableFinished) call.aborted = true
      })
      const fault = faults.next(service)
      if (fault === undefined) return deliver(response, await answered(route, received), {}, hangUp)
      const due = answerOf(fault) ?? (await answered(route, received))
      if (fault.delay_ms !== undefined) await delayed(response, fault.delay_ms, faults)
      if (!response.destroyed) await deliver(response, due, fault, hangUp)
    }

    const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
      // A caller that disconnects is not an error in the sandbox.
      response.on("error", () => {})
      answer(request, response).catch((error: unknown) => fail(response, error))
    })
    server.on("checkExpectation", (request, response) => server.emit("request", request, response))
    server.on("connect", (_, socket) => refuseBytes(socket))
    server.on("clientError", (_, socket) => refuseBytes(socket))
    yield* Effect.acquireRelease(listen(server, port), () => close(server))
    return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, plug: plugs.plug }
  })

/** Waits for the fault's delay. The wait ends early if the caller disconnects or the faults are cleared. */
const delayed = (response: ServerResponse, millis: number, faults: Faults): Promise<void> =>
  new Promise((resolve) => {
    if (response.destroyed) return resolve()
    const end = faults.delay(millis, () => {
      response.off("close", end)
      resolve()
    })
    response.once("close", end)
  })

const answered = async (route: Route, received: Received): Promise<Answer> => {
  try {
    return await route.answer(received)
  } catch (error) {
    if (error instanceof Refusal) return error.answer
    throw error
  }
}

/** Responds with 500 after a bug in the sandbox, which must not stop the service. */
const fail = (response: ServerResponse, error: unknown): void => {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const { body, headers, status } = json(500, {
    error: `the sandbox failed: ${error instanceof Error ? error.message : String(error)}`
  })
  for (const name of response.getHeaderNames()) response.removeHeader(name)
  response.writeHead(status, headers).end(body)
}

/**
 * Returns whether the origin is a page on this machine, such as the service's `/docs`. Only these pages may control the sandbox and read its
 * responses.
 */
const isPageHere = (origin: string | undefined): boolean =>
  origin !== undefined && /^https?:\/\/(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])(?::\d+)?$/.test(origin)

const preflight: Answer = {
  status: 204,
  headers: {
    "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
    "access-control-allow-headers": "content-type"
  },
  body: ""
}

const tooLarge = json(413, { error: `body: must be at most ${bodyBytesMax} bytes` })
const notFound = json(404, { error: "the sandbox has no such route" })

// ---- routing ------------------------------------------------------------------------------------------------------------

interface Plug {
  readonly route: Route
  readonly service: ServiceName | undefined
}

interface Endpoint {
  readonly pattern: RegExp
  readonly methods: Map<string, Plug>
}

type Found =
  | (Plug & { readonly path: string; readonly query: string; readonly params: Readonly<Record<string, string>> })
  | { readonly refusal: Answer }

const directory = () => {
  const places = new Map<string, Endpoint>()

  const plug: Switchboard["plug"] = (routes, service) => {
    for (const route of routes) {
      const place = places.get(route.path) ?? { pattern: patternOf(route.path), methods: new Map() }
      places.set(route.path, place)
      place.methods.set(route.method, { route, service })
    }
  }

  const find = (method: string, url: string): Found => {
    // A client that uses a proxy sends an absolute URL.
    const target = url.startsWith("/") ? url : url.replace(/^[a-z]+:\/\/[^/?]*/i, "")
    const at = target.indexOf("?")
    const path = at === -1 ? target : target.slice(0, at)
    const query = at === -1 ? "" : target.slice(at + 1)
    const place = places.get(path) ?? [...places.values()].find(({ pattern }) => pattern.test(path))
    if (place === undefined) return { refusal: notFound }
    const plugged = place.methods.get(method)
    if (plugged === undefined) {
      const allow = [...place.methods.keys()].join(", ")
      return { refusal: json(405, { error: "Method Not Allowed" }, { allow }) }
    }
    const params = paramsOf(place.pattern, path)
    return params === undefined ? { refusal: notFound } : { ...plugged, path, query, params }
  }

  return { plug, find }
}

const patternOf = (path: string): RegExp => {
  const source = path
    .split(/(\{\w+\*?\})/)
    .map((part) => {
      const [, name, many] = /^\{(\w+)(\*?)\}$/.exec(part) ?? []
      if (name === undefined) return part.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
      return many === "*" ? `(?<${name}>.+)` : `(?<${name}>[^/]+)`
    })
    .join("")
  return new RegExp(`^${source}$`)
}

const none: Readonly<Record<string, string>> = {}

const paramsOf = (pattern: RegExp, path: string): Readonly<Record<string, string>> | undefined => {
  const groups = pattern.exec(path)?.groups
  if (groups === undefined) return none
  try {
    return Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, decodeURIComponent(text)]))
  } catch {
    return undefined
  }
}

// ---- the socket -------------------------------------------------------------------------------------------------------------

/** Reads the complete body. Returns `undefined` if it is too large or truncated. Bytes beyond the limit are discarded. */
const read = (request: IncomingMessage): Promise<Buffer | undefined> =>
  new Promise((resolve) => {
    const chunks: Array<Buffer> = []
    let size = 0
    request
      .on("data", (chunk: Buffer) => {
        size += chunk.length
        if (size <= bodyBytesMax) chunks.push(chunk)
        else {
          chunks.length = 0
          resolve(undefined)
        }
      })
      .once("end", () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)))
      .once("error", () => resolve(undefined))
      .once("close", () => resolve(undefined))
  })

const listen = (server: Server, port: number): Effect.Effect<void, SandboxFailed> =>
  Effect.async((resume) => {
    const failed = (error: NodeJS.ErrnoException) =>
      resume(
        Effect.fail({
          _tag: "SandboxFailed",
          message: `the sandbox cannot listen on 127.0.0.1:${port} (${error.code ?? error.message})`
        })
      )
    server.once("error", failed)
    server.listen({ host: "127.0.0.1", port }, () => {
      server.off("error", failed)
      resume(Effect.void)
    })
  })

/** Gives open requests a second of real time to finish, then closes their connections. The fiber's own clock can be steered. */
const close = (server: Server): Effect.Effect<void> =>
  Effect.async((resume) => {
    const idle = setInterval(() => server.closeIdleConnections(), 20)
    const limit = setTimeout(() => server.closeAllConnections(), closeTimeout)
    server.close(() => {
      clearInterval(idle)
      clearTimeout(limit)
      resume(Effect.void)
    })
  })

const notHttp = JSON.stringify({ error: "the sandbox cannot parse this HTTP request" })

const refuseBytes = (socket: Duplex): void => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  socket.on("error", () => {})
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(notHttp)}\r\n` +
      `Connection: close\r\n\r\n${notHttp}`
  )
}
