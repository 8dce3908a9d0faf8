/**
 * The instant at which the client stops waiting for an answer. Node tells an answer that its connection has ended, but not one that still
 * waits behind another answer of the same connection, as pipelined requests make them: that one has no socket yet.
 */
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Whether the answer is over, or its connection. */
export const isOver = (response: ServerResponse): boolean =>
  response.closed || response.destroyed || (response.socket === null && response.req.socket.destroyed)

/** Calls back once, when the answer is over or its connection has ended; not for one that is over already. */
export const whenOver = (response: ServerResponse, then: () => void): void => {
  if (response.socket !== null) {
    response.once("close", then)
    return
  }
  const others = waitingOn(response.req.socket)
  const over = () => {
    response.off("close", over)
    others.delete(over)
    then()
  }
  response.once("close", over)
  others.add(over)
}

/** Those who wait for the end of a connection: one listener for them all, since many requests may be pipelined. */
const waiting = new WeakMap<Socket, Set<() => void>>()

const waitingOn = (socket: Socket): Set<() => void> => {
  const known = waiting.get(socket)
  if (known !== undefined) return known
  const those = new Set<() => void>()
  waiting.set(socket, those)
  socket.once("close", () => {
    for (const tell of those) tell()
  })
  return those
}
