/** A client of the service or of the outside world. It uses one connection per request and may disconnect at any byte. */
import http from "node:http"
import type { Network } from "./machine/Network.ts"
import type { Leaving } from "./Story.ts"

export interface Heard {
  /** The status, or 0 if no head arrived. */
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
  /** Whether the complete response arrived before the client disconnected. */
  readonly complete: boolean
  /** The reason why the response is incomplete. */
  readonly error: string | undefined
}

export interface Request {
  readonly method?: string
  readonly token?: string | undefined
  readonly json?: unknown
  readonly raw?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly leaves?: Leaving | undefined
}

/** The client timeout in milliseconds. Nothing in the service takes that long, so a timeout means that the service hangs. */
export const patience = 600_000

export const gaveUp = "gave up"

export const ask = (network: Network, url: string, request: Request = {}): Promise<Heard> =>
  new Promise((resolve) => {
    const { headers, json, leaves = {}, method, raw, token } = request
    const body = raw ?? (json === undefined ? undefined : JSON.stringify(json))
    const { hostname, pathname, port, search } = new URL(url)
    const socket = network.connect(Number(port), undefined, leaves)
    let status = 0
    let head: http.IncomingHttpHeaders = {}
    let text = ""
    let over = false
    const end = (complete: boolean, error?: string) => {
      if (over) return
      over = true
      clearTimeout(limit)
      clearTimeout(leaving)
      socket.destroy()
      resolve({ status, headers: head, text, complete, error })
    }
    const limit = setTimeout(() => end(false, gaveUp), patience)
    const leaving = leaves.after === undefined ? undefined : setTimeout(() => end(false, "left"), leaves.after)
    const sent = http.request(
      {
        createConnection: () => socket as never,
        hostname,
        path: pathname + search,
        method: method ?? (body === undefined ? "GET" : "POST"),
        headers: {
          connection: "close",
          ...(body !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...headers
        }
      },
      (response) => {
        status = response.statusCode ?? 0
        head = response.headers
        response.setEncoding("utf8").on("data", (piece: string) => (text += piece))
        response.once("end", () => end(response.complete, response.complete ? undefined : "cut"))
        response.once("error", ({ message }) => end(false, message))
      }
    )
    sent.once("error", ({ message }) => end(false, message))
    sent.end(body)
  })

/** Parses the body as JSON. Returns `undefined` if it is not JSON. */
// oxlint-disable-next-line typescript/no-explicit-any -- callers inspect responses of any format
export const bodyOf = ({ text }: Heard): any => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
