/**
 * A model behind an OpenAI-compatible address. It repeats the last user message; its usage counts one token for each word that
 * white space sets apart, of all messages and of the answer.
 */
import type { ServerResponse } from "node:http"
import { json, pause } from "./Outside.ts"
import type { Exchange, Fault, Service } from "./Outside.ts"

interface Request {
  readonly model?: unknown
  readonly messages?: unknown
  readonly prompt?: unknown
  readonly n?: unknown
  readonly max_tokens?: unknown
  readonly max_completion_tokens?: unknown
  readonly stream?: unknown
  readonly stream_options?: { readonly include_usage?: unknown } | null
}

const words = (text: string): ReadonlyArray<string> => text.split(/\s+/).filter((word) => word !== "")

/** The text of a message, whether it is one string or an array of parts. */
const textOf = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content.map((part: { readonly text?: unknown }) => (typeof part?.text === "string" ? part.text : "")).join(" ")
}

/** How many pieces of a stream come before it is dropped. */
const piecesBeforeDrop = 3

let made = 0

export const chat: Service = (exchange, fault) => {
  const { body, headers, method, path, response } = exchange
  if (!/^Bearer \S+/.test(headers.authorization ?? "")) {
    return json(response, 401, { error: { message: "Incorrect API key provided", type: "invalid_request_error" } })
  }
  if (method === "GET" && path.endsWith("/models")) return json(response, 200, { object: "list", data: [] })
  if (method === "POST" && path.endsWith("/chat/completions")) return answerChat(exchange, fault)
  if (method === "POST" && path.endsWith("/completions")) return answerText(exchange, fault)
  return json(response, 404, { error: { message: `Unknown path ${path}`, type: "invalid_request_error" } })

  function answerChat({ response }: Exchange, fault: Fault | undefined) {
    const request = (body ?? {}) as Request
    if (!Array.isArray(request.messages) || request.messages.length === 0) {
      return json(response, 400, { error: { message: "messages: at least one", type: "invalid_request_error" } })
    }
    const messages = request.messages as ReadonlyArray<{ readonly role?: unknown; readonly content?: unknown }>
    const last = messages.findLast(({ role }) => role === "user")
    const prompt_tokens = messages.reduce((sum, { content }) => sum + words(textOf(content)).length, 0)
    return answer(response, request, fault, words(textOf(last?.content)), prompt_tokens, {
      object: "chat.completion",
      choice: (text) => ({ message: { role: "assistant", content: text } }),
      piece: (text, first) => ({ delta: first ? { role: "assistant", content: text } : { content: text } }),
      last: { delta: {} }
    })
  }

  function answerText({ response }: Exchange, fault: Fault | undefined) {
    const request = (body ?? {}) as Request
    const prompt = Array.isArray(request.prompt) ? request.prompt.map(String).join(" ") : String(request.prompt ?? "")
    const spoken = words(prompt)
    return answer(response, request, fault, spoken, spoken.length, {
      object: "text_completion",
      choice: (text) => ({ text, logprobs: null }),
      piece: (text) => ({ text }),
      last: { text: "" }
    })
  }
}

interface Form {
  readonly object: string
  readonly choice: (text: string) => object
  readonly piece: (text: string, first: boolean) => object
  readonly last: object
}

const answer = async (
  response: ServerResponse,
  request: Request,
  fault: Fault | undefined,
  spoken: ReadonlyArray<string>,
  prompt_tokens: number,
  form: Form
): Promise<void> => {
  const limit = Number(request.max_completion_tokens ?? request.max_tokens ?? Number.POSITIVE_INFINITY)
  const said = spoken.slice(0, limit)
  const finish_reason = said.length < spoken.length ? "length" : "stop"
  const answers = typeof request.n === "number" && request.n > 0 ? request.n : 1
  const completion_tokens = said.length * answers
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
  const base = {
    id: `sandbox-${++made}`,
    object: form.object,
    created: Math.floor(Date.now() / 1000),
    model: request.model
  }

  if (request.stream !== true) {
    const choices = Array.from({ length: answers }, (_, index) => ({
      index,
      ...form.choice(said.join(" ")),
      finish_reason
    }))
    return json(response, 200, { ...base, choices, usage })
  }

  const object = form.object === "chat.completion" ? "chat.completion.chunk" : form.object
  const include = request.stream_options?.include_usage === true
  const event = (choices: ReadonlyArray<object>, rest: object = {}) =>
    `data: ${JSON.stringify({ ...base, object, choices, ...(include && { usage: null }), ...rest })}\n\n`

  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
  const pieces: Array<string> = []
  for (let index = 0; index < answers; index++) {
    pieces.push(event([{ index, ...form.piece("", true), finish_reason: null }]))
    for (const [i, word] of said.entries()) {
      pieces.push(event([{ index, ...form.piece(i === 0 ? word : ` ${word}`, false), finish_reason: null }]))
    }
    pieces.push(event([{ index, ...form.last, finish_reason }]))
  }
  if (include) pieces.push(event([], { usage }))
  pieces.push("data: [DONE]\n\n")

  for (const [i, piece] of pieces.entries()) {
    if (response.destroyed) return
    if (fault?.drop === true && i === piecesBeforeDrop) return void response.destroy()
    response.write(piece)
    if (fault?.chunk_delay_ms !== undefined) await pause(fault.chunk_delay_ms)
    // What is dropped must have left before the connection does.
    else if (fault?.drop === true) await pause(5)
  }
  response.end()
}
