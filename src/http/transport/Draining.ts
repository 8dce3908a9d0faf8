/** Notifies endless responses when their server is stopping or a reload has replaced their services. */
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** The callbacks of each server. A server needs only one listener for all of them. */
const waiting = new WeakMap<Server, Set<() => void>>()

/** Calls back once when the response should end. The returned function cancels the callback. */
export const whenDraining = (response: ServerResponse, then: () => void): (() => void) => {
  // Node sets this field on each of its sockets.
  const { server } = response.req.socket as Socket & { readonly server?: Server }
  if (server === undefined) return () => {}
  const known = waiting.get(server)
  const those = known ?? new Set()
  if (known === undefined) {
    waiting.set(server, those)
    const tellAll = () => {
      const all = [...those]
      those.clear()
      for (const tell of all) tell()
    }
    server.once("draining", tellAll)
    server.on("replaced", tellAll)
  }
  those.add(then)
  return () => void those.delete(then)
}
