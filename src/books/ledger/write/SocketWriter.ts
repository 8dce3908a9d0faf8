/**
 * The writer of a worker process (`serve --workers`). It sends transactions over a socket to the writer's thread, which belongs to the process that
 * owns the file. If the socket closes, another connection is opened.
 */
import { Effect } from "effect"
import { connect } from "node:net"
import * as Frames from "./Frames.ts"
import * as QueuedWriter from "./QueuedWriter.ts"
import type { Link, LinkEvents } from "./QueuedWriter.ts"
import type { Door } from "./Thread.ts"

export const make = (door: Door) =>
  Effect.suspend(() =>
    QueuedWriter.make({
      open: linkTo(door),
      target: door.path,
      ended: (pause) => `the connection to the writer was lost and will be opened again in ${pause} ms`
    })
  )

const linkTo =
  ({ path, token }: Door) =>
  ({ onAnswer, onEnd }: LinkEvents): Link => {
    // Half-open, because the writer still replies to all pending submissions before it closes its half.
    const socket = connect({ path, allowHalfOpen: true })
    let reason = "the writer closed it"
    const read = Frames.reader((frame) => onAnswer(frame.tape))
    socket.on("data", (bytes) => {
      try {
        read(bytes)
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)))
      }
    })
    socket.on("error", (error) => {
      reason = error.message
    })
    socket.once("end", () => socket.end())
    socket.once("close", () => onEnd(reason))
    socket.write(Frames.greeting(token))
    return {
      send: ({ now, transactions }) => void socket.write(Frames.encode(now, transactions)),
      close: () => void socket.end(),
      abort: () => void socket.destroy()
    }
  }
