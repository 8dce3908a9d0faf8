/**
 * Distributes connections on the owner's port to the workers in turn. (In Node's cluster module, a connection in transit to a killed worker stays
 * open without a response.) The owner holds its copy of a connection until the worker acknowledges it, before reading from it. If the worker ends or
 * refuses first, the connection goes to the next worker.
 */
import type { ChildProcess } from "node:child_process"
import type { Socket } from "node:net"
import type { Fed } from "../../http/server/Listener.ts"

interface Message {
  readonly connection: "given" | "taken" | "refused"
}

const isMessage = (message: unknown): message is Message =>
  typeof message === "object" && message !== null && "connection" in message

type Sender = Pick<ChildProcess, "send">

/** The owner's side. A worker gets its next connection once it has acknowledged the previous one. */
export class Connections {
  private readonly waiting: Array<Socket> = []
  /** The idle workers, longest idle first. */
  private readonly free = new Map<number, Sender>()
  /** The connections in transit, by worker number. */
  private readonly given = new Map<number, Socket>()

  /** Takes a connection, which must be paused. */
  give(socket: Socket): void {
    // An unread socket can still emit an error.
    socket.on("error", () => {})
    this.waiting.push(socket)
    this.next()
  }

  /** Adds a worker. */
  join(number: number, worker: Sender): void {
    this.free.set(number, worker)
    this.next()
  }

  /** Removes a worker. A connection in transit to this worker goes to another. */
  leave(number: number): void {
    this.free.delete(number)
    this.giveAgain(number)
    this.next()
  }

  /** Handles a worker's message. */
  receive(number: number, worker: Sender, message: unknown): void {
    if (!isMessage(message)) return
    if (message.connection === "refused") return this.leave(number)
    const socket = this.given.get(number)
    this.given.delete(number)
    // Closes this process's copy only.
    socket?.destroy()
    this.free.set(number, worker)
    this.next()
  }

  /** Closes the connections that no worker has taken. */
  close(): void {
    for (const socket of this.waiting.splice(0)) socket.destroy()
  }

  private giveAgain(number: number): void {
    const socket = this.given.get(number)
    if (socket === undefined) return
    this.given.delete(number)
    this.waiting.unshift(socket)
  }

  private next(): void {
    while (this.waiting.length > 0 && this.free.size > 0) {
      const socket = this.waiting.shift()!
      if (socket.destroyed) continue
      const [number, worker] = this.free.entries().next().value!
      this.free.delete(number)
      this.given.set(number, socket)
      const message: Message = { connection: "given" }
      worker.send(message, socket, { keepOpen: true }, (error) => {
        if (error !== null) this.leave(number)
      })
    }
  }
}

export interface Feed extends Fed {
  /** Handles a message from the owner and its handle. Ignores other kinds of messages. */
  readonly receive: (message: unknown, handle: unknown) => void
}

/** The worker's side: feeds the connections to the process's server. `leave` tells the owner to send no more connections. */
export const feedOf = (address: Fed["address"], leave: () => void): Feed => {
  const sockets = new Set<Socket>()
  let accept: ((socket: Socket) => void) | undefined
  const reply = (connection: Message["connection"]) => process.send!({ connection } satisfies Message)
  return {
    address,
    sockets,
    begin: (then) => {
      accept = then
    },
    stop: () => {
      accept = undefined
      leave()
    },
    receive: (message, handle) => {
      if (!isMessage(message)) return
      const socket = handle as Socket | undefined
      if (accept === undefined) {
        reply("refused")
        return void socket?.destroy()
      }
      reply("taken")
      // The client has closed the connection meanwhile.
      if (socket === undefined) return
      // Node's server also sets this on the connections that it accepts.
      socket.allowHalfOpen = true
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
      accept(socket)
    }
  }
}
