/**
 * Detects that a client no longer waits for a response. Node emits `close` only on the response that owns the socket. A pipelined response that waits
 * for an earlier one has no socket yet, so its connection is watched instead.
 */
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Returns whether the response or its connection has ended. */
export const isOver = (response: ServerResponse): boolean =>
  response.closed || response.destroyed || (response.socket === null && response.req.socket.destroyed)

/** Calls back once when the response or its connection ends, unless that has already happened. */
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

/** The callbacks of each connection. A connection needs only one listener for all its pipelined requests. */
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
