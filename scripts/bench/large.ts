// The large bodies of the part `large`: prompts and responses of about 30 MB in every protocol, the largest bodies of the other routes, and the
// vendor that sends these responses.
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { endWithParent, report } from "./processes.ts"

export const largeBytes = 30_000_000

/** The content of a large body: one base64 attachment, one text, or many short messages. */
export type Content = "file" | "text" | "many"
export type ClientProtocol = "chat" | "messages" | "responses"
export type VendorProtocol = ClientProtocol | "google" | "bedrock"

export const clientProtocols = ["chat", "messages", "responses"] as const
export const vendorProtocols = ["chat", "messages", "responses", "google", "bedrock"] as const

const sentence = 'Each side names an "account", an amount and the moment at which it was booked.\n'
const textOf = (bytes: number): string => sentence.repeat(Math.ceil(bytes / (sentence.length + 3)))
const base64 = (bytes: number): string =>
  Buffer.alloc(Math.floor((bytes * 3) / 4), "noise that is an image").toString("base64")
const short = textOf(700)

const parts = {
  chat: {
    text: (text: string) => ({ type: "text", text }),
    file: (data: string) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } })
  },
  messages: {
    text: (text: string) => ({ type: "text", text }),
    file: (data: string) => ({ type: "image", source: { type: "base64", media_type: "image/png", data } })
  },
  responses: {
    text: (text: string) => ({ type: "input_text", text }),
    file: (data: string) => ({ type: "input_image", image_url: `data:image/png;base64,${data}` })
  }
}

const spoken = (protocol: ClientProtocol, content: Content): ReadonlyArray<object> => {
  const { file, text } = parts[protocol]
  switch (content) {
    case "file":
      return [{ role: "user", content: [text("Describe this."), file(base64(largeBytes))] }]
    case "text":
      return [{ role: "user", content: textOf(largeBytes) }]
    case "many":
      // The number of messages is odd, so the last message is the user's.
      return Array.from({ length: 2 * Math.floor(largeBytes / 1_600) + 1 }, (_, i) => ({
        role: i % 2 === 0 || protocol === "responses" ? "user" : "assistant",
        content: short
      }))
  }
}

/** Builds an image's base64 data URI of about this length. */
export const imageOf = (bytes: number): string => `data:image/png;base64,${base64(bytes)}`

export const longText = textOf

/** Builds a large client request. */
export const promptOf = (protocol: ClientProtocol, content: Content, model: string): string => {
  const messages = spoken(protocol, content)
  switch (protocol) {
    case "chat":
      return JSON.stringify({ model, messages, max_tokens: 64 })
    case "messages":
      return JSON.stringify({ model, messages, max_tokens: 64 })
    case "responses":
      return JSON.stringify({ model, input: messages, max_output_tokens: 64, store: false })
  }
}

const figures = { in: 12, out: 34 }

/** Builds a vendor's response with one long text or, for `many`, with many short tool calls. */
export const answerOf = (protocol: VendorProtocol, bytes: number, many: boolean): string => {
  const text = textOf(bytes)
  const calls = many
    ? Array.from({ length: Math.floor(bytes / 900) }, (_, i) => ({ id: `call_${i}`, said: short }))
    : []
  switch (protocol) {
    case "chat": {
      const called = calls.map(({ id, said }) => ({
        id,
        type: "function",
        function: { name: "note", arguments: JSON.stringify({ said }) }
      }))
      const message = many
        ? { role: "assistant", content: null, tool_calls: called }
        : { role: "assistant", content: text }
      return JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1,
        model: "m",
        choices: [{ index: 0, message, finish_reason: many ? "tool_calls" : "stop" }],
        usage: { prompt_tokens: figures.in, completion_tokens: figures.out, total_tokens: figures.in + figures.out }
      })
    }
    case "messages":
      return JSON.stringify({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "m",
        content: many
          ? calls.map(({ id, said }) => ({ type: "tool_use", id, name: "note", input: { said } }))
          : [{ type: "text", text }],
        stop_reason: many ? "tool_use" : "end_turn",
        usage: { input_tokens: figures.in, output_tokens: figures.out }
      })
    case "responses":
      return JSON.stringify({
        id: "resp_1",
        object: "response",
        status: "completed",
        model: "m",
        output: many
          ? calls.map(({ id, said }) => ({
              type: "function_call",
              id: `fc_${id}`,
              call_id: id,
              name: "note",
              arguments: JSON.stringify({ said })
            }))
          : [
              {
                type: "message",
                id: "msg_1",
                role: "assistant",
                content: [{ type: "output_text", text, annotations: [] }]
              }
            ],
        usage: { input_tokens: figures.in, output_tokens: figures.out, total_tokens: figures.in + figures.out }
      })
    case "google":
      return JSON.stringify({
        candidates: [
          {
            content: {
              role: "model",
              parts: many ? calls.map(({ said }) => ({ functionCall: { name: "note", args: { said } } })) : [{ text }]
            },
            finishReason: "STOP"
          }
        ],
        usageMetadata: {
          promptTokenCount: figures.in,
          candidatesTokenCount: figures.out,
          totalTokenCount: figures.in + figures.out
        }
      })
    case "bedrock":
      return JSON.stringify({
        output: {
          message: {
            role: "assistant",
            content: many
              ? calls.map(({ id, said }) => ({ toolUse: { toolUseId: id, name: "note", input: { said } } }))
              : [{ text }]
          }
        },
        stopReason: many ? "tool_use" : "end_turn",
        usage: { inputTokens: figures.in, outputTokens: figures.out, totalTokens: figures.in + figures.out }
      })
  }
}

/** The size of a large tool response. The service accepts at most 8 MiB. */
const toolBytes = 8_000_000
const several = <A>(bytes: number, each: number, of: (i: number) => A): ReadonlyArray<A> =>
  Array.from({ length: Math.max(1, Math.floor(bytes / each)) }, (_, i) => of(i))

/** The responses to requests other than prompts, by the name that replaces the protocol in the path. */
const others: Readonly<Record<string, (bytes: number) => object>> = {
  embeddings: (bytes) => ({
    object: "list",
    data: several(bytes, 20_000, (index) => ({
      object: "embedding",
      index,
      embedding: Array.from({ length: 1_000 }, (_, i) => ((i * 7919) % 1000) / 1013)
    })),
    model: "m",
    usage: { prompt_tokens: figures.in, total_tokens: figures.in }
  }),
  rerank: (bytes) => ({
    results: several(bytes, 800, (index) => ({ index, relevance_score: 0.5 })),
    usage: { prompt_tokens: figures.in }
  }),
  decisions: (bytes) => ({
    id: "d",
    model: "m",
    answers: Object.fromEntries(several(bytes, 60, (i) => [`answer${i}`, { value: i % 2 === 0, confidence: 0.5 }])),
    usage: { input_tokens: figures.in, output_tokens: figures.out }
  }),
  search: (bytes) => ({
    results: several(bytes, 120, (i) => ({ title: `Result ${i}`, url: `http://example.com/${i}`, content: "tides" }))
  }),
  transcription: (bytes) => ({
    text: "tide",
    duration: 60,
    segments: several(bytes, 60, (i) => ({ start: i, end: i + 1, text: "the tide is in" }))
  })
}

/** Simulates a vendor's job queue. The first status request for a job reports that it is complete. */
const jobOf = (method: string, url: string, bytes: number): object => {
  if (method === "POST") return { request_id: "job" }
  if (url.endsWith("/status")) return { status: "COMPLETED" }
  return { images: several(4, 1, () => ({ url: imageOf(bytes / 4), width: 512, height: 512 })) }
}

const responseFor = (method: string, url: string): object | string => {
  const [, size, protocol] = url.split("/")
  if (url.endsWith("/count_tokens")) return { input_tokens: figures.in }
  const isTool = protocol !== "embeddings" && Object.hasOwn({ ...others, images: 0 }, protocol!)
  // A small embeddings response has 20 embeddings.
  const bytes = size === "small" ? (protocol === "embeddings" ? 400_000 : 100) : isTool ? toolBytes : largeBytes
  if (protocol === "images") return jobOf(method, url, bytes)
  return others[protocol!]?.(bytes) ?? answerOf(protocol as VendorProtocol, bytes, size === "many")
}

/** The vendor's cached responses, by method and path (`/<size>/<protocol>/...`). A size is `small`, `text` or `many`. */
const answers = new Map<string, Buffer>()
const bodyFor = (method: string, url: string): Buffer => {
  const name = `${method} ${url}`
  let body = answers.get(name)
  if (body === undefined) {
    const response = responseFor(method, url)
    answers.set(name, (body = Buffer.from(typeof response === "string" ? response : JSON.stringify(response))))
  }
  return body
}

/** Starts the vendor. It reads each request to its end, sends the response for its path, and reports the request's length in `x-asked`. */
const startVendor = (): void => {
  const server = createServer((request, response) => {
    let asked = 0
    request.on("data", (chunk: Buffer) => (asked += chunk.length))
    request.on("end", () => {
      const body = bodyFor(request.method!, request.url!)
      response.writeHead(200, { "content-type": "application/json", "content-length": body.length, "x-asked": asked })
      response.end(body)
    })
  })
  server.listen(0, "127.0.0.1", () => report({ port: (server.address() as AddressInfo).port }))
}

if (process.argv[1]?.endsWith("large.ts") === true && process.send !== undefined) {
  endWithParent()
  startVendor()
}
