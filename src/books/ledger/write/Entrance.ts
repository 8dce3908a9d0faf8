/**
 * Accepts other processes' transactions for the writer's thread, over a local socket (`Thread.Door`). Each connection must first send the token. A
 * process can end, for example by a signal, after it has sent complete frames. Their transactions are still committed.
 */
import { timingSafeEqual } from "node:crypto"
import { rmSync } from "node:fs"
import { createServer } from "node:net"
import type { Socket } from "node:net"
import type { Transaction } from "../rules/Transaction.ts"
import { outcomeSender, transactionReceiver } from "./Codec.ts"
import type { WriterOutcome } from "./Codec.ts"
import * as Frames from "./Frames.ts"
import type { Frame } from "./Frames.ts"
import type { Door } from "./Thread.ts"

export interface Submitted {
  /** The Unix time of sending, in milliseconds. */
  readonly now: number
  readonly transactions: ReadonlyArray<Transaction>
  /** Sends the outcomes. A sender's submissions share this function, and their outcomes must be sent in the order of submission. */
  readonly reply: (outcomes: ReadonlyArray<WriterOutcome>) => void
}

export interface Entrance {
  /** Calls `then` once processes can connect. */
  readonly opened: (then: () => void) => void
  /** Closes all connections after their last reply. */
  readonly close: () => void
}

/** Opens the socket. A failure ends the thread. */
export const open = ({ path, token }: Door, onSubmitted: (one: Submitted) => void): Entrance => {
  const sockets = new Set<Socket>()
  // A killed process leaves its socket behind. The lock on the database proves that this process has ended.
  rmSync(path, { force: true })
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
    serve(socket, Buffer.from(token), onSubmitted)
  })
  server.listen(path)
  return {
    opened: (then) => void server.once("listening", then),
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroySoon()
    }
  }
}

const serve = (socket: Socket, token: Buffer, onSubmitted: (one: Submitted) => void): void => {
  const { decode } = transactionReceiver()
  const { encode } = outcomeSender()
  let isAdmitted = false
  /** The number of transactions without a reply. */
  let open = 0
  let ended = false
  const send = (outcomes: ReadonlyArray<WriterOutcome>) => {
    // The process might have ended.
    if (socket.writable) socket.write(Frames.encode(0, encode(outcomes)))
  }
  const reply: Submitted["reply"] = (outcomes) => {
    send(outcomes)
    open -= outcomes.length
    if (ended && open === 0) socket.end()
  }
  const admit = ({ tape: { texts } }: Frame) => {
    const given = Buffer.from(texts[0] ?? "")
    if (given.length !== token.length || !timingSafeEqual(given, token)) throw new Error("the token is wrong")
    isAdmitted = true
    send([])
  }
  const read = Frames.reader((frame) => {
    if (!isAdmitted) return admit(frame)
    const transactions = decode(frame.tape)
    open += transactions.length
    onSubmitted({ now: frame.now, transactions, reply })
  })
  socket.on("data", (bytes) => {
    try {
      read(bytes)
    } catch {
      // The bytes do not come from a process of this build.
      socket.destroy()
    }
  })
  // The other process was probably killed. The `close` event follows.
  socket.on("error", () => {})
  socket.once("end", () => {
    ended = true
    if (open === 0) socket.end()
  })
}
