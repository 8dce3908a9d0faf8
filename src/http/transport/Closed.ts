/**
 * Detects that a client no longer waits for a response. Node emits `close` on the response that has the socket. A pipelined response, which waits for
 * an earlier one, has no socket yet, so the connection itself is watched.
 */
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Whether the response or its connection has ended. */
export const isOver = (response: ServerResponse): boolean =>
  response.closed || response.destroyed || (response.socket === null && response.req.socket.destroyed)

/** Calls back once when the response or its connection ends, but not if that has already happened. */
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

/** Callbacks by connection. A connection has one listener for all its pipelined requests. */
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
