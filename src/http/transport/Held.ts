/** Holds requests while their service starts. */
import type { RequestListener, Server, ServerResponse } from "node:http"
import { isOver } from "./Closed.ts"
import { crossOrigin } from "./CrossOrigin.ts"
import { phraseOf } from "./Reason.ts"
import * as RequestId from "./RequestId.ts"

/** How long a request is held, in milliseconds. */
const holdMax = 10_000

/** Adds a function to `held` that releases the request. Refuses the request if it is still held after `holdMax`. */
export const hold = (held: Set<() => void>, response: ServerResponse, pass: () => void): void => {
  const release = () => {
    clearTimeout(limit)
    if (!isOver(response)) pass()
  }
  const limit = setTimeout(() => {
    held.delete(release)
    if (!isOver(response)) {
      answer(response, 503, { error: "the service is starting; try again shortly", code: "unavailable" })
    }
  }, holdMax)
  held.add(release)
}

/**
 * Holds the requests of a host's server that listens before its application is built. Without a listener, node would ignore a request and leave its
 * client waiting forever. To pass the requests on, call the returned function once the server has its own listener.
 */
export const holdUntilServed = (server: Server): (() => void) => {
  const held = new Set<() => void>()
  const holding: RequestListener = (request, response) => {
    // The application's own listener responds, although the held requests have not been released yet.
    if (server.listenerCount("request") > 1) return
    hold(held, response, () => server.emit("request", request, response))
  }
  server.on("request", holding)
  return () => {
    server.off("request", holding)
    for (const release of held) release()
    held.clear()
  }
}

/** Sends a response with the same headers as `Reply`. */
export const answer = (
  response: ServerResponse,
  status: number,
  content: { readonly error?: string; readonly status?: string; readonly code?: string }
): void => {
  const body = JSON.stringify(content)
  const phrase = content.error === undefined ? undefined : phraseOf(content.error)
  if (phrase !== undefined) response.statusMessage = phrase
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    ...crossOrigin,
    "x-request-id": RequestId.next()
  })
  response.end(body)
}
