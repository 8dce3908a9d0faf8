/**
 * A model vendor that uses Anthropic's protocol. It replies with `Echo`, and adds reasoning if the request allows it. Its prompt cache writes the
 * text up to the last `cache_control` on first use and reads it afterwards.
 */
import { Effect } from "effect"
import { contextLength, newerMount } from "./Chat.ts"
import { isBody, json, jsonBody, Refusal } from "./Outside.ts"
import type { Answer, Body, Make, Received } from "./Outside.ts"
import { promptCache, countWords, cut, idOf, replyTo } from "./Echo.ts"
import type { CacheUse, Part, Reply } from "./Echo.ts"

const refuse = (status: number, type: string, message: string): Refusal =>
  new Refusal(json(status, { type: "error", error: { type, message }, request_id: idOf("req") }))

const wrong = (message: string): Refusal => refuse(400, "invalid_request_error", message)

export const make: Make = () => {
  const cached = promptCache()
  const mount = newerMount
  return Effect.succeed({
    routes: [
      { method: "POST", path: `${mount}/messages`, answer: (received) => message(bodyOf(received), cached) },
      { method: "POST", path: `${mount}/messages/count_tokens`, answer: (received) => counted(bodyOf(received)) }
    ],
    configuration: {}
  })
}

// ---- the request --------------------------------------------------------------------------------------------------------------

const bodyOf = ({ body, headers }: Received): Body => {
  if ((headers["x-api-key"] ?? "") === "") throw refuse(401, "authentication_error", "x-api-key header is required")
  if (headers["anthropic-version"] === undefined) throw wrong("anthropic-version: header is required")
  const parsed = jsonBody(body, wrong, "The request body is not valid JSON.", "The request body must be a JSON object.")
  if (typeof parsed.model !== "string" || parsed.model === "") throw wrong("model: Field required")
  if (!Array.isArray(parsed.messages) || parsed.messages.length === 0)
    throw wrong("messages: at least one message is required")
  return parsed
}

const isImage = (block: Body): boolean => block.type === "image" || block.type === "document"

/** Returns the texts of blocks, including tool results. */
const textsOf = (content: unknown): ReadonlyArray<string> => {
  if (typeof content === "string") return [content]
  if (!Array.isArray(content)) return []
  return content.filter(isBody).flatMap((block) => {
    if (block.type === "tool_result") return textsOf(block.content)
    if (isImage(block)) return ["image"]
    return typeof block.text === "string" ? [block.text] : []
  })
}

interface Prompt {
  /** The last message. The model repeats it. */
  readonly said: string
  readonly words: number
  /** The text that the request marks for caching. */
  readonly marked: string
}

const promptOf = ({ messages, system, tools }: Body): Prompt => {
  const turns = (messages as ReadonlyArray<unknown>).filter(isBody)
  const blocks = [system, ...turns.map(({ content }) => content)].flatMap((content): ReadonlyArray<unknown> =>
    Array.isArray(content) ? content : [content]
  )
  const last = blocks.findLastIndex((block) => isBody(block) && isBody(block.cache_control))
  const texts = blocks.map((block) => textsOf(Array.isArray(block) ? block : [block].map(asBlock)).join(" "))
  const words = countWords(
    [...texts, ...(Array.isArray(tools) ? tools.map((tool) => JSON.stringify(tool)) : [])].join(" ")
  )
  if (words > contextLength) throw wrong(`prompt is too long: ${words} tokens > ${contextLength} maximum`)
  return {
    said: textsOf(turns.findLast(({ role }) => role !== "system")?.content)
      .filter((text) => text !== "image")
      .join("\n"),
    words,
    marked: texts.slice(0, last + 1).join(" ")
  }
}

const asBlock = (block: unknown): unknown => (typeof block === "string" ? { type: "text", text: block } : block)

const namesOf = (tools: unknown): ReadonlySet<string> =>
  new Set(Array.isArray(tools) ? tools.filter(isBody).map(({ name }) => String(name)) : [])

const counted = (body: Body): Answer => json(200, { input_tokens: promptOf(body).words })

// ---- the response ---------------------------------------------------------------------------------------------------------

const message = (body: Body, cached: (text: string) => CacheUse): Answer => {
  const { max_tokens, model, stream, thinking, tools } = body
  if (typeof max_tokens !== "number" || !Number.isInteger(max_tokens) || max_tokens < 1)
    throw wrong("max_tokens: Field required")
  const { marked, said, words } = promptOf(body)
  const thinks = isBody(thinking) && thinking.type !== "disabled"
  const speech = replyTo(said, { limit: max_tokens, tools: namesOf(tools), thinks })
  const { read, written } = marked === "" ? { read: 0, written: 0 } : cached(marked)
  const usage = {
    input_tokens: words - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
    output_tokens: speech.words,
    service_tier: "standard"
  }
  const head = { id: idOf("msg").replace("-", "_"), type: "message", role: "assistant", model }
  const headers = { "request-id": idOf("req") }
  if (stream !== true) {
    const stop = { stop_reason: reasons[speech.end], stop_sequence: null }
    return json(200, { ...head, content: speech.parts.map(blockOf), ...stop, usage }, headers)
  }
  return {
    status: 200,
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", ...headers },
    pieces: events(head, speech, usage),
    first: 4
  }
}

const reasons = { stop: "end_turn", length: "max_tokens", tools: "tool_use" } as const
const signature = "c2FuZGJveA=="

const blockOf = (part: Part): object => {
  switch (part.type) {
    case "thought":
      return { type: "thinking", thinking: part.text, signature }
    case "text":
      return { type: "text", text: part.text }
    case "call":
      return {
        type: "tool_use",
        id: part.id.replace("call-", "toolu_"),
        name: part.name,
        input: JSON.parse(part.input) as unknown
      }
  }
}

/** Returns a block's initial form and its deltas. */
const piecesOf = (part: Part): { readonly begin: object; readonly deltas: ReadonlyArray<object> } => {
  switch (part.type) {
    case "thought":
      return {
        begin: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          ...cut(part.text).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature }
        ]
      }
    case "text":
      return {
        begin: { type: "text", text: "" },
        deltas: cut(part.text).map((text) => ({ type: "text_delta", text }))
      }
    case "call":
      return {
        begin: { ...blockOf(part), input: {} },
        deltas: cut(part.input).map((partial_json) => ({ type: "input_json_delta", partial_json }))
      }
  }
}

const event = (data: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

function* events(head: object, { end, parts }: Reply, usage: { readonly output_tokens: number }): Generator<string> {
  const begun = { ...head, content: [], stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 1 } }
  yield event({ type: "message_start", message: begun })
  yield event({ type: "ping" })
  for (const [index, part] of parts.entries()) {
    const { begin, deltas } = piecesOf(part)
    yield event({ type: "content_block_start", index, content_block: begin })
    for (const delta of deltas) yield event({ type: "content_block_delta", index, delta })
    yield event({ type: "content_block_stop", index })
  }
  const delta = { stop_reason: reasons[end], stop_sequence: null }
  yield event({ type: "message_delta", delta, usage: { output_tokens: usage.output_tokens } })
  yield event({ type: "message_stop" })
}
