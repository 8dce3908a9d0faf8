/** A byte-level client that writes given bytes to a socket and parses HTTP/1.1 responses. */
import { connect } from "node:net"

export interface Answer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
  /** Whether the response arrived completely. */
  readonly whole: boolean
}

export interface Sending {
  readonly port: number
  /** The client's loopback address. */
  readonly from: string
  readonly pieces: ReadonlyArray<Buffer>
  readonly pause_ms: number
  /** How the client proceeds after sending: it waits, closes its side, or disconnects. */
  readonly end: "wait" | "half" | "cut"
  /** The methods of the requests in the bytes, which determine the expected responses and which of them have no body. */
  readonly methods: ReadonlyArray<string>
  /** Returns whether a response is endless. The client then disconnects after its head. */
  readonly isEndless: (answer: Answer) => boolean
  readonly limit_ms: number
}

export interface Received {
  readonly answers: ReadonlyArray<Answer>
  /** `late` means that neither all responses nor the end of the connection arrived in time. */
  readonly end: "answered" | "closed" | "left" | "late"
  /** The received bytes that are not HTTP. */
  readonly rest: Buffer
  readonly millis: number
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Sends the bytes and resolves to the received responses. Never rejects. */
export const exchange = (sending: Sending): Promise<Received> =>
  new Promise((resolve) => {
    const began = performance.now()
    const socket = connect({ port: sending.port, host: "127.0.0.1", localAddress: sending.from })
    const chunks: Array<Buffer> = []
    const finish = (end: Received["end"]) => {
      clearTimeout(limit)
      socket.destroy()
      const { answers, rest } = answersIn(Buffer.concat(chunks), sending.methods)
      resolve({ answers, rest, end, millis: performance.now() - began })
    }
    const limit = setTimeout(() => finish("late"), sending.limit_ms)
    socket.setNoDelay(true)
    socket.on("data", (chunk) => {
      chunks.push(chunk)
      const { answers } = answersIn(chunks.length === 1 ? chunk : Buffer.concat(chunks), sending.methods)
      const last = answers.at(-1)
      if (last !== undefined && !last.whole && sending.isEndless(last)) return finish("answered")
      if (answers.length >= sending.methods.length && last!.whole) finish("answered")
    })
    // The server may close the connection before it has read everything.
    socket.on("error", () => {})
    socket.once("close", () => finish("closed"))
    socket.once("connect", async () => {
      for (const [index, piece] of sending.pieces.entries()) {
        if (index > 0 && sending.pause_ms > 0) await pause(sending.pause_ms)
        if (!socket.writable) return
        if (!socket.write(piece)) await new Promise((go) => socket.once("drain", go).once("close", go))
      }
      if (sending.end === "half") socket.end()
      if (sending.end === "cut") finish("left")
    })
  })

/** Parses the responses at the start of the bytes. */
const answersIn = (bytes: Buffer, methods: ReadonlyArray<string>): { answers: Array<Answer>; rest: Buffer } => {
  const answers: Array<Answer> = []
  let at = 0
  while (at < bytes.length) {
    const end = bytes.indexOf("\r\n\r\n", at)
    if (end === -1) break
    const [line = "", ...lines] = bytes.toString("latin1", at, end).split("\r\n")
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(line)?.[1] ?? Number.NaN)
    if (Number.isNaN(status)) break
    at = end + 4
    if (status < 200) continue
    const headers = new Map(
      lines.map((one) => [one.slice(0, one.indexOf(":")).toLowerCase(), one.slice(one.indexOf(":") + 1).trim()])
    )
    const empty = methods[answers.length] === "HEAD" || status === 204 || status === 304
    const { body, next } = empty ? { body: Buffer.alloc(0), next: at } : bodyAt(bytes, at, headers)
    answers.push({ status, headers, body, whole: next !== undefined })
    if (next === undefined) return { answers, rest: Buffer.alloc(0) }
    at = next
  }
  return { answers, rest: bytes.subarray(at) }
}

/** Returns a body and the start of the next response, or `undefined` while the body is incomplete. */
const bodyAt = (
  bytes: Buffer,
  at: number,
  headers: ReadonlyMap<string, string>
): { body: Buffer; next: number | undefined } => {
  if (headers.get("transfer-encoding") !== "chunked") {
    const length = Number(headers.get("content-length") ?? Number.NaN)
    if (Number.isNaN(length)) return { body: bytes.subarray(at), next: undefined }
    return { body: bytes.subarray(at, at + length), next: at + length > bytes.length ? undefined : at + length }
  }
  const pieces: Array<Buffer> = []
  for (;;) {
    const line = bytes.indexOf("\r\n", at)
    if (line === -1) return { body: Buffer.concat(pieces), next: undefined }
    const length = Number.parseInt(bytes.toString("latin1", at, line), 16)
    if (Number.isNaN(length) || line + 4 + length > bytes.length)
      return { body: Buffer.concat(pieces), next: undefined }
    pieces.push(bytes.subarray(line + 2, line + 2 + length))
    at = line + 4 + length
    if (length === 0) return { body: Buffer.concat(pieces), next: at }
  }
}
