/** A fast chat provider that fails at a given rate, with an error, a truncated stream, broken JSON or silence. */
import { createServer } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Vendor {
  readonly url: string
  readonly close: () => void
}

/** The share of each failure type in the responses. */
const share = 0.015

const usage = { prompt_tokens: 12, completion_tokens: 8, total_tokens: 20 }
const whole = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "one two three" }, finish_reason: "stop" }],
  usage
})

const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`
const pieces = Array.from({ length: 8 }, (_, index) => chunk(`word${index} `))
const last = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage })}\n\ndata: [DONE]\n\n`

const answer = (request: IncomingMessage, response: ServerResponse, body: string): void => {
  const random = Math.random()
  if (random < share) return void response.writeHead(500, { "content-type": "application/json" }).end('{"error":{}}')
  if (random < 2 * share) return void response.writeHead(200, { "content-type": "application/json" }).end('{"usage":')
  // Send nothing until the service times out.
  if (random < 2.2 * share) return
  if (!body.includes('"stream":true')) {
    response.writeHead(200, { "content-type": "application/json", "content-length": String(whole.length) }).end(whole)
    return
  }
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(pieces.slice(0, 4).join(""))
  setTimeout(() => {
    if (random < 3.2 * share) return request.socket.destroy()
    response.end(pieces.slice(4).join("") + last)
  }, 5)
}

export const make = async (): Promise<Vendor> => {
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (bytes: Buffer) => chunks.push(bytes))
    request.on("end", () => answer(request, response, Buffer.concat(chunks).toString("latin1")))
  })
  server.keepAliveTimeout = 20_000
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
