/** Writes a response through Node, with the headers, pauses or break of a fault. */
import type { ServerResponse } from "node:http"
import { lowered } from "./Faults.ts"
import type { Fault } from "./Faults.ts"
import type { Answer, Streamed, Whole } from "./Outside.ts"

export type Manner = Pick<Fault, "headers" | "drop" | "chunk_delay_ms">

/** Delivers a response. `hangUp` closes the connection once the written bytes are sent. */
export const deliver = async (
  response: ServerResponse,
  answer: Answer,
  manner: Manner,
  hangUp: () => void
): Promise<void> => {
  const headers = manner.headers === undefined ? answer.headers : { ...answer.headers, ...lowered(manner.headers) }
  if ("pieces" in answer) await stream(response, { ...answer, headers }, manner, hangUp)
  else if (manner.drop === true) hangUp()
  else whole(response, { ...answer, headers })
}

const whole = (response: ServerResponse, { body, headers, status }: Whole): void => {
  const bytes = typeof body === "string" ? Buffer.from(body) : body
  // Responses with these statuses must contain neither a body nor a length.
  const bodyless = status === 204 || status === 304
  response.writeHead(status, bodyless ? headers : { "content-length": bytes.length, ...headers })
  response.end(bodyless ? undefined : bytes)
}

const stream = async (
  response: ServerResponse,
  { first, headers, pieces, status }: Streamed,
  { chunk_delay_ms, drop }: Manner,
  hangUp: () => void
): Promise<void> => {
  response.writeHead(status, headers)
  const each = drop === true || chunk_delay_ms !== undefined
  let sent = 0
  for (const piece of each ? pieces : lumps(pieces)) {
    if (drop === true && sent === first) break
    if (sent > 0 && chunk_delay_ms !== undefined) await pause(response, chunk_delay_ms)
    if (response.destroyed) return
    if (!response.write(piece)) await drained(response)
    sent += 1
  }
  if (drop === true) hangUp()
  else response.end()
}

const lumpLength = 16 * 1024

/** Merges successive strings to reduce the number of writes, because the sandbox shares its thread with the service. */
function* lumps(pieces: Streamed["pieces"]): Generator<string | Uint8Array> {
  let text = ""
  for (const piece of pieces) {
    if (typeof piece === "string") {
      text += piece
      if (text.length < lumpLength) continue
    }
    if (text !== "") yield text
    text = ""
    if (typeof piece !== "string") yield piece
  }
  if (text !== "") yield text
}

/** Waits in real time, regardless of the steered clock. The wait ends when the caller disconnects. */
const pause = (response: ServerResponse, millis: number): Promise<void> =>
  new Promise((resolve) => {
    if (response.destroyed) return resolve()
    const over = () => {
      clearTimeout(timer)
      response.off("close", over)
      resolve()
    }
    const timer = setTimeout(over, millis)
    response.once("close", over)
  })

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    if (response.destroyed) return resolve()
    const over = () => {
      response.off("drain", over).off("close", over)
      resolve()
    }
    response.once("drain", over).once("close", over)
  })
