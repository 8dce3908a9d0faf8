/** A proxy in front of the sandbox's vendors. It corrupts their responses to marked requests. */
import { createServer } from "node:net"
import type { AddressInfo, Socket } from "node:net"
import { delivered } from "./Fault.ts"
import type { Answer, Change } from "./Fault.ts"

export interface Proxy {
  readonly url: string
  /** The changes to responses, by a string in the request. Equal strings always get equal changes. */
  readonly faults: Map<string, ReadonlyArray<Change>>
  /** The changes to responses to requests without such a string. Such requests poll a job. */
  ambient: ReadonlyArray<Change>
  /** Closes all connections. */
  readonly hangUp: () => void
  readonly close: () => void
}

export const marker = /fault-\d+-/

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

export const make = async (target: string): Promise<Proxy> => {
  const sockets = new Set<Socket>()
  const faults = new Map<string, ReadonlyArray<Change>>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket)).on("error", () => {})
    serve(socket, target, proxy)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const hangUp = () => {
    for (const socket of sockets) socket.destroy()
  }
  const proxy: Proxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults,
    ambient: [],
    hangUp,
    close: () => {
      server.close()
      hangUp()
    }
  }
  return proxy
}

/** Reads the requests on a connection one after another. */
const serve = (socket: Socket, target: string, proxy: Proxy): void => {
  let bytes: Buffer = Buffer.alloc(0)
  let busy = false
  const next = async (): Promise<void> => {
    if (busy) return
    const request = requestIn(bytes)
    if (request === undefined) return
    bytes = bytes.subarray(request.length)
    busy = true
    await answer(socket, target, proxy, request)
    busy = false
    if (!socket.destroyed) await next()
  }
  socket.on("data", (chunk: Buffer) => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
    void next()
  })
}

interface Request {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Buffer
  readonly length: number
}

const requestIn = (bytes: Buffer): Request | undefined => {
  const end = bytes.indexOf("\r\n\r\n")
  if (end === -1) return undefined
  const [line = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n")
  const [method = "", path = ""] = line.split(" ")
  const headers = Object.fromEntries(
    lines.map((one) => [one.slice(0, one.indexOf(":")).toLowerCase(), one.slice(one.indexOf(":") + 1).trim()])
  )
  const from = end + 4
  if (headers["transfer-encoding"] !== "chunked") {
    const length = from + Number(headers["content-length"] ?? 0)
    return bytes.length < length ? undefined : { method, path, headers, body: bytes.subarray(from, length), length }
  }
  const pieces: Array<Buffer> = []
  for (let at = from; ;) {
    const line = bytes.indexOf("\r\n", at)
    if (line === -1) return undefined
    const size = Number.parseInt(bytes.toString("latin1", at, line), 16)
    if (bytes.length < line + 4 + size) return undefined
    pieces.push(bytes.subarray(line + 2, line + 2 + size))
    at = line + 4 + size
    if (size === 0) return { method, path, headers, body: Buffer.concat(pieces), length: at }
  }
}

const hopHeaders = new Set(["host", "connection", "content-length", "transfer-encoding", "expect", "keep-alive"])

const answer = async (socket: Socket, target: string, { ambient, faults }: Proxy, request: Request): Promise<void> => {
  const { body, headers, method, path } = request
  const sent = await fetch(target + path, {
    method,
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !hopHeaders.has(name))),
    redirect: "manual",
    ...(method !== "GET" && { body: Uint8Array.from(body) })
  })
  const right: Answer = {
    status: sent.status,
    headers: [...sent.headers].filter(([name]) => !hopHeaders.has(name)),
    body: Buffer.from(await sent.arrayBuffer())
  }
  const name = marker.exec(decodeURIComponent(path))?.[0] ?? marker.exec(body.toString("latin1"))?.[0]
  const { pause_ms, pieces, then } = delivered(right, name === undefined ? ambient : (faults.get(name) ?? []))
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await pause(pause_ms)
    if (socket.destroyed) return
    if (!socket.write(piece)) await new Promise((go) => socket.once("drain", go).once("close", go))
  }
  if (then === "close") socket.end()
  if (then === "reset") socket.resetAndDestroy()
}
