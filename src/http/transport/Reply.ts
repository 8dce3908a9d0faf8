/** The response of a raw route: a status, headers, and a complete or streamed body. */
import { HttpServerResponse } from "@effect/platform"
import type { ServerResponse } from "node:http"
import type { Readable } from "node:stream"
import { ratesOfProblem } from "../../books/gate/Problems.ts"
import { rateHeaders } from "../../books/gate/RateHeaders.ts"
import { write } from "../../kernel/Decimal.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"
import type { Shape } from "../contract/Annotations.ts"
import { crossOrigin } from "./CrossOrigin.ts"
import { isOver, whenOver } from "./Closed.ts"
import { reasonOf } from "./Reason.ts"

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | Readable
}

export const json = (status: number, body: unknown, headers: Record<string, string> = {}): Reply => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: write(body)
})

/** Builds a refusal, in the format of its endpoint if the endpoint has one. */
export const ofProblem = (problem: ProblemInstance<string>, request_id: string, shape: Shape | undefined): Reply => {
  const { body, headers, retry_after, status } = problem
  const rates = ratesOfProblem(problem)
  return json(status, shape === undefined ? body : shape.write(problem, request_id), {
    ...headers,
    ...(rates !== undefined && { ...rateHeaders(rates), ...shape?.rateHeaders?.(rates) }),
    ...(retry_after !== undefined && { "retry-after": String(retry_after) }),
    // Close the connection instead of waiting for the remainder of a slow body.
    ...(status === 408 && { connection: "close" })
  })
}

const isStream = (body: Reply["body"]): body is Readable => typeof body !== "string" && !Buffer.isBuffer(body)

const phraseFor = (status: number, body: string | Buffer): string | undefined =>
  status < 400 ? undefined : reasonOf(status, body)

/** Converts a reply for the platform's server, without the common headers. */
export const toResponse = ({ body, headers, status }: Reply): HttpServerResponse.HttpServerResponse =>
  isStream(body)
    ? HttpServerResponse.raw(body, { status, headers })
    : HttpServerResponse.uint8Array(typeof body === "string" ? Buffer.from(body) : body, {
        status,
        statusText: phraseFor(status, body),
        headers: { ...headers, "content-length": String(Buffer.byteLength(body)) },
        contentType: headers["content-type"]
      })

const common: ReadonlyArray<string> = Object.entries(crossOrigin).flat()

/** Sends a reply through node's response, with the common headers. The platform sends the same bytes for `toResponse`. */
export const send = (response: ServerResponse, { body, headers, status }: Reply, request_id: string): void => {
  if (isOver(response) || response.headersSent) {
    if (isStream(body)) body.destroy()
    return
  }
  // Node accepts an array of alternating names and values, so no object per response is needed.
  const head: Array<string> = []
  for (const name in headers) head.push(name, headers[name]!)
  if (!isStream(body)) head.push("content-length", String(Buffer.byteLength(body)))
  head.push(...common, "x-request-id", request_id)
  if (!isStream(body)) {
    const reason = phraseFor(status, body)
    if (reason === undefined) response.writeHead(status, head)
    else response.writeHead(status, reason, head)
    response.end(body)
    return
  }
  response.writeHead(status, head)
  whenOver(response, () => body.destroy())
  body.once("error", () => response.destroy())
  flow(body, response)
}

/** Works like `pipe`, but without its listeners for other kinds of streams, which took 2 % of a streamed call. */
const flow = (body: Readable, response: ServerResponse): void => {
  const resume = () => body.resume()
  body.on("data", (chunk: Buffer) => {
    if (response.write(chunk)) return
    body.pause()
    response.once("drain", resume)
  })
  body.once("end", () => response.end())
}
