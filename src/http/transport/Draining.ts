/** Word that the server begins to stop, for answers that would otherwise go on for ever. */
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Those that wait for the end of a server: one listener for them all. */
const waiting = new WeakMap<Server, Set<() => void>>()

/** Calls back once, when the server of this answer begins to drain, unless what it gives back is called before. */
export const whenDraining = (response: ServerResponse, then: () => void): (() => void) => {
  // Node's own bookkeeping of each of its sockets.
  const { server } = response.req.socket as Socket & { readonly server?: Server }
  if (server === undefined) return () => {}
  let those = waiting.get(server)
  if (those === undefined) {
    const all = (those = new Set<() => void>())
    waiting.set(server, all)
    server.once("draining", () => all.forEach((tell) => tell()))
  }
  const all = those.add(then)
  return () => void all.delete(then)
}
