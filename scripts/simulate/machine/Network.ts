/**
 * A simulated network that replaces Node's sockets, for `net.connect` and `net.Server.listen`. The seed determines how written data is split into
 * chunks, and when each chunk arrives. When an owner ends, its sockets are reset.
 */
import http from "node:http"
import { createRequire, syncBuiltinESMExports } from "node:module"
import type { Server } from "node:net"
import { Duplex } from "node:stream"
import type { Machine } from "./Machine.ts"

const require = createRequire(import.meta.url)

/** The owner of a socket or port. A socket or port ends together with its owner. `undefined` is the outside world, which never ends. */
export type Owner = object | undefined

type Connect = (...args: ReadonlyArray<unknown>) => Socket

/** `part` is the probability that a chunk is only a part of a write. Otherwise, `all` is the probability that it contains all buffered data. */
const pieces = { part: 0.1, all: 0.5 }
/** The size of the send buffer in bytes. The writer waits while it is full. */
const windowBytes = 64 * 1024

const problem = (code: string): Error => Object.assign(new Error(code), { code, syscall: "simulated" })

/** A connection ends once its client has sent or received this many bytes. */
export interface Cut {
  readonly sent?: number | undefined
  readonly received?: number | undefined
}

export class Socket extends Duplex {
  connecting = true
  bytesRead = 0
  bytesWritten = 0
  remoteAddress: string | undefined = "127.0.0.1"
  remoteFamily = "IPv4"
  remotePort: number
  localAddress = "127.0.0.1"
  localPort: number
  timeout = 0
  peer: Socket | undefined
  readonly owner: Owner
  readonly cut: Cut
  private readonly machine: Machine
  private readonly waiting: Array<{ bytes: Buffer | null; taken: (() => void) | undefined }> = []
  private arriving = false
  private full = false
  private idle: NodeJS.Timeout | undefined

  constructor(
    machine: Machine,
    owner: Owner,
    ports: readonly [local: number, remote: number],
    halfOpen: boolean,
    cut: Cut
  ) {
    super({ allowHalfOpen: halfOpen, highWaterMark: windowBytes })
    this.setMaxListeners(0)
    this.machine = machine
    this.owner = owner
    this.localPort = ports[0]
    this.remotePort = ports[1]
    this.cut = cut
  }

  get pending(): boolean {
    return this.connecting
  }

  get readyState(): string {
    return this.connecting ? "opening" : this.destroyed ? "closed" : "open"
  }

  opened(): void {
    this.connecting = false
    this.emit("connect")
    this.emit("ready")
    this.flow()
  }

  override _read(): void {
    this.full = false
    this.peer?.flow()
  }

  override _write(bytes: Buffer | string, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const written = typeof bytes === "string" ? Buffer.from(bytes, encoding) : bytes
    this.bytesWritten += written.length
    this.active()
    // The other end is gone, so the data is dropped.
    if (!this.connecting && this.peer === undefined) return done()
    // The sender's buffer accepts the data. If the buffer is full, the writer waits.
    if (this.writableLength < windowBytes) {
      this.waiting.push({ bytes: written, taken: undefined })
      done()
    } else this.waiting.push({ bytes: written, taken: done })
    this.flow()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.waiting.push({ bytes: null, taken: undefined })
    this.flow()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.idle)
    const { peer } = this
    this.peer = undefined
    if (peer !== undefined) {
      // Data that was written before a normal end still arrives. In any other case, the other end sees a reset.
      const orderly = this.writableFinished && error === null
      if (orderly) this.lastWords(peer)
      else this.machine.add(() => peer.gone())
    }
    done(error)
    this.machine.add(() => this.emit("close_simulated"))
  }

  /** Ends this socket, because the other end has disappeared without closing the connection. */
  gone(): void {
    if (this.destroyed) return
    this.peer = undefined
    this.destroy(problem("ECONNRESET"))
  }

  private lastWords(peer: Socket): void {
    this.machine.add(() => {
      if (peer.destroyed) return
      for (const { bytes } of this.waiting.splice(0)) if (bytes !== null) peer.arrive(bytes)
      peer.arrive(null)
      peer.peer = undefined
    })
  }

  /** Delivers the next chunk to the other end, in a separate turn. */
  flow(): void {
    if (this.arriving || this.connecting || this.waiting.length === 0 || this.peer === undefined || this.peer.full)
      return
    this.arriving = true
    this.machine.add(() => {
      this.arriving = false
      const { peer } = this
      if (peer === undefined || peer.destroyed || peer.full) return
      this.step(peer)
      this.flow()
    })
  }

  private step(peer: Socket): void {
    const { random } = this.machine
    const first = this.waiting[0]
    if (first === undefined) return
    if (first.bytes === null) {
      this.waiting.shift()
      peer.arrive(null)
      return
    }
    if (first.bytes.length > 1 && random.chance(pieces.part)) {
      const size = 1 + random.below(first.bytes.length - 1)
      const part = first.bytes.subarray(0, size)
      first.bytes = first.bytes.subarray(size)
      peer.arrive(part)
      return
    }
    const most = random.chance(pieces.all) ? this.waiting.length : 1
    for (let i = 0; i < most && this.waiting[0]?.bytes != null && !peer.full; i++) {
      const { bytes, taken } = this.waiting.shift()!
      peer.arrive(bytes!)
      taken?.()
    }
  }

  private arrive(bytes: Buffer | null): void {
    if (this.destroyed || this.readableEnded) return
    this.active()
    if (bytes === null) {
      this.push(null)
      return
    }
    const { received } = this.cut
    const { sent } = this.peer?.cut ?? {}
    const mine = received === undefined ? undefined : received - this.bytesRead
    const its = sent === undefined ? undefined : sent - this.bytesRead
    const room = Math.min(mine ?? bytes.length, its ?? bytes.length)
    const taken = room < bytes.length ? bytes.subarray(0, Math.max(0, room)) : bytes
    this.bytesRead += taken.length
    if (taken.length > 0 && !this.push(taken)) this.full = true
    if (room >= bytes.length) return
    // At this point, the client disconnects.
    const client = mine === room ? this : this.peer
    this.machine.add(() => client?.destroy(problem("ECLIENTLEFT")))
  }

  private active(): void {
    if (this.timeout > 0) this.setTimeout(this.timeout)
  }

  setTimeout(millis: number, callback?: () => void): this {
    clearTimeout(this.idle)
    this.timeout = millis
    if (callback !== undefined) this.once("timeout", callback)
    if (millis > 0) this.idle = setTimeout(() => this.emit("timeout"), millis)
    return this
  }

  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once("finish", () => this.destroy())
  }

  resetAndDestroy(): this {
    return this.destroy()
  }

  address() {
    return { address: "127.0.0.1", family: "IPv4", port: this.localPort }
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

interface Listener {
  readonly server: Server
  readonly owner: Owner
}

export class Network {
  /** The presumed owner of the code that requests a socket or port. */
  owner: Owner
  /** The listening servers, by port. By default, a client that connects to a port of the outside world is the service. */
  readonly listeners = new Map<number, Listener>()
  readonly sockets = new Set<Socket>()
  readonly machine: Machine
  port = 20_000

  constructor(machine: Machine) {
    this.machine = machine
  }

  connect(port: number, owner: Owner, cut: Cut = {}, halfOpen = false): Socket {
    const socket = new Socket(this.machine, owner, [++this.port, port], halfOpen, cut)
    this.keep(socket)
    this.machine.add(() => {
      if (socket.destroyed) return
      const listener = this.listeners.get(port)
      if (listener === undefined) {
        socket.destroy(problem("ECONNREFUSED"))
        return
      }
      const accepted = new Socket(this.machine, listener.owner, [port, socket.localPort], true, {})
      this.keep(accepted)
      socket.peer = accepted
      accepted.peer = socket
      accepted.connecting = false
      listener.server.emit("connection", accepted)
      socket.opened()
      accepted.flow()
    })
    return socket
  }

  /** Ends all sockets and ports of this owner instantly. */
  lose(owner: object): void {
    for (const [port, listener] of this.listeners) if (listener.owner === owner) this.listeners.delete(port)
    this.owner = undefined
    for (const socket of this.sockets) {
      if (socket.owner !== owner) continue
      socket.on("error", () => {})
      socket.destroy(problem("ECONNRESET"))
    }
  }

  private keep(socket: Socket): void {
    this.sockets.add(socket)
    socket.once("close_simulated", () => this.sockets.delete(socket))
  }
}

/** Replaces Node's functions for connecting and listening. */
export const install = (network: Network): void => {
  const net = require("node:net") as Record<string, unknown>
  const connect: Connect = (...args) => {
    const { callback, port } = addressIn(args)
    const isOutside = network.listeners.get(port)?.owner === undefined
    // Code of an ended life cannot connect.
    const isReachable = !isOutside || network.owner !== undefined
    const socket = network.connect(isReachable ? port : 0, isOutside ? network.owner : undefined)
    if (callback !== undefined) socket.once("connect", callback)
    return socket
  }
  net["connect"] = connect
  net["createConnection"] = connect
  Object.assign(http.Agent.prototype, { createConnection: connect })
  const { prototype } = net["Server"] as { readonly prototype: Record<string, unknown> }
  Object.assign(prototype, {
    listen(this: Server & { _handle: unknown; simulated?: number }, ...args: ReadonlyArray<unknown>) {
      const { owner } = network
      const { callback, port: asked } = addressIn(args)
      const port = asked === 0 ? ++network.port : asked
      if (callback !== undefined) this.once("listening", callback)
      network.machine.add(() => {
        if (network.listeners.has(port)) return void this.emit("error", problem("EADDRINUSE"))
        network.listeners.set(port, { server: this, owner })
        this._handle = {}
        this.simulated = port
        this.emit("listening")
      })
      return this
    },
    address(this: { simulated?: number }) {
      return this.simulated === undefined ? null : { address: "127.0.0.1", family: "IPv4", port: this.simulated }
    },
    close(this: Server & { _handle: unknown; simulated?: number }, callback?: (error?: Error) => void) {
      if (callback !== undefined) this.once("close", callback)
      if (this.simulated !== undefined) network.listeners.delete(this.simulated)
      this._handle = null
      network.machine.add(() => this.emit("close"))
      return this
    },
    getConnections: (callback: (error: null, count: number) => void) => callback(null, 0),
    ref(this: unknown) {
      return this
    },
    unref(this: unknown) {
      return this
    }
  })
  syncBuiltinESMExports()
}

/** Parses the arguments of `connect` or `listen`, for the signatures in use. */
const addressIn = (
  args: ReadonlyArray<unknown>
): { readonly port: number; readonly callback: (() => void) | undefined } => {
  const [first] = args
  const callback = args.find((one): one is () => void => typeof one === "function")
  const port = typeof first === "object" && first !== null ? (first as { port?: unknown }).port : first
  return { port: Number(port ?? 0), callback }
}
