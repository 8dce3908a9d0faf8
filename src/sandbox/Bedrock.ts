/**
 * A model vendor that uses Bedrock's Converse protocol. Its streams are binary frames. It replies with `Echo`, and adds reasoning if the
 * request enables it. The first request with a given text before its last cache point writes that text to the prompt cache. Later requests read it.
 */
import { EventStreamCodec } from "@smithy/core/event-streams"
import { Effect } from "effect"
import { contextLength } from "./Chat.ts"
import { isBody, json, jsonBody, listOf, objectOf, Refusal } from "./Outside.ts"
import type { Answer, Body, Make, Received } from "./Outside.ts"
import { promptCache, countWords, cut, idOf, replyTo } from "./Echo.ts"
import type { CacheUse, Part, Reply } from "./Echo.ts"

const mount = "/bedrock"

export const make: Make = ({ origin }) => {
  const cached = promptCache()
  const ask = (streams: boolean) => (received: Received) => converse(bodyOf(received), cached, streams)
  return Effect.succeed({
    routes: [
      { method: "POST", path: `${mount}/model/{id}/converse`, answer: ask(false) },
      { method: "POST", path: `${mount}/model/{id}/converse-stream`, answer: ask(true) }
    ],
    configuration: {
      upstreams: { "sandbox-bedrock": { base_url: origin + mount, api_key: "sandbox", speaks: ["bedrock"] } },
      models: [
        {
          id: "sandbox-bedrock",
          name: "Sandbox Bedrock",
          description: "Repeats the prompt, over Bedrock's protocol",
          owned_by: "sandbox",
          context_length: contextLength,
          max_output_tokens: 4096,
          price: {
            prompt_usd_per_million: "3",
            completion_usd_per_million: "15",
            cached_prompt_usd_per_million: "0.3",
            cache_write_usd_per_million: "3.75"
          },
          upstreams: [{ upstream: "sandbox-bedrock", model: "anthropic.claude-sandbox-v1:0" }]
        }
      ]
    }
  })
}

// ---- the request --------------------------------------------------------------------------------------------------------------

const refuse = (status: number, type: string, message: string): Refusal =>
  new Refusal(json(status, { message }, { "x-amzn-errortype": type }))

const wrong = (message: string): Refusal => refuse(400, "ValidationException", message)

const bodyOf = ({ body, headers }: Received): Body => {
  if (!/^(?:bearer|AWS4-HMAC-SHA256) +\S/i.test(headers.authorization ?? ""))
    throw refuse(403, "AccessDeniedException", "Missing Authentication Token")
  const parsed = jsonBody(body, wrong, "The request body is not valid JSON.", "The request body must be a JSON object.")
  if (listOf(parsed.messages).length === 0) throw wrong("A conversation must start with a user message.")
  return parsed
}

/** Returns the text of a block, including tool results. An image counts as one word. */
const textOf = (block: unknown): string => {
  const { document, image, text, toolResult } = objectOf(block)
  if (isBody(toolResult)) return listOf(toolResult.content).map(textOf).join(" ")
  if (image !== undefined || document !== undefined) return "image"
  return typeof text === "string" ? text : ""
}

interface Prompt {
  /** The last message. The model repeats it. */
  readonly said: string
  readonly words: number
  /** The text that the request marks for caching. */
  readonly marked: string
}

const promptOf = ({ messages, system, toolConfig }: Body): Prompt => {
  const turns = listOf(messages).map((turn) => listOf(objectOf(turn).content))
  const blocks = [...listOf(system), ...turns.flat()]
  const last = blocks.findLastIndex((block) => objectOf(block).cachePoint !== undefined)
  const texts = blocks.map(textOf)
  const tools = listOf(objectOf(toolConfig).tools).map((tool) => JSON.stringify(tool))
  const words = countWords([...texts, ...tools].join(" "))
  if (words > contextLength) throw wrong(`Input is too long for requested model: ${words} tokens.`)
  const said = (turns.at(-1) ?? []).filter((block) => objectOf(block).image === undefined)
  return { said: said.map(textOf).join("\n").trim(), words, marked: texts.slice(0, last + 1).join(" ") }
}

const namesOf = (toolConfig: unknown): ReadonlySet<string> =>
  new Set(listOf(objectOf(toolConfig).tools).map((tool) => String(objectOf(objectOf(tool).toolSpec).name)))

// ---- the response ---------------------------------------------------------------------------------------------------------

const converse = (body: Body, cached: (text: string) => CacheUse, streams: boolean): Answer => {
  const { maxTokens } = objectOf(body.inferenceConfig)
  const thinking = objectOf(objectOf(body.additionalModelRequestFields).thinking)
  const { marked, said, words } = promptOf(body)
  const speech = replyTo(said, {
    limit: typeof maxTokens === "number" ? maxTokens : undefined,
    tools: namesOf(body.toolConfig),
    thinks: thinking.type !== undefined && thinking.type !== "disabled"
  })
  const { read, written } = marked === "" ? { read: 0, written: 0 } : cached(marked)
  const usage = {
    inputTokens: words - read - written,
    outputTokens: speech.words,
    totalTokens: words + speech.words,
    cacheReadInputTokens: read,
    cacheWriteInputTokens: written
  }
  if (streams) return streamed(speech, usage)
  const message = { role: "assistant", content: speech.parts.map(blockOf) }
  const metrics = { latencyMs: 1 }
  const headers = { "x-amzn-requestid": idOf("req") }
  return json(200, { output: { message }, stopReason: reasons[speech.end], usage, metrics }, headers)
}

const reasons = { stop: "end_turn", length: "max_tokens", tools: "tool_use" } as const
const signature = "c2FuZGJveA=="

const blockOf = (part: Part): object => {
  switch (part.type) {
    case "thought":
      return { reasoningContent: { reasoningText: { text: part.text, signature } } }
    case "text":
      return { text: part.text }
    case "call":
      return { toolUse: { toolUseId: part.id, name: part.name, input: JSON.parse(part.input) as unknown } }
  }
}

const deltasOf = (part: Part): ReadonlyArray<object> => {
  switch (part.type) {
    case "thought":
      return [...cut(part.text).map((text) => ({ text })), { signature }].map((reasoningContent) => ({
        reasoningContent
      }))
    case "text":
      return cut(part.text).map((text) => ({ text }))
    case "call":
      return cut(part.input).map((input) => ({ toolUse: { input } }))
  }
}

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
  (text) => Buffer.from(text, "utf8")
)

/** Encodes a frame. If the name ends in `Exception`, the frame is an exception instead of an event. */
export const frame = (name: string, data: object): Uint8Array => {
  const type = name.endsWith("Exception") ? "exception" : "event"
  const text = (value: string) => ({ type: "string", value }) as const
  return codec.encode({
    headers: {
      [`:${type}-type`]: text(name),
      ":content-type": text("application/json"),
      ":message-type": text(type)
    },
    body: Buffer.from(JSON.stringify(data))
  })
}

function* frames({ end, parts }: Reply, usage: object): Generator<Uint8Array> {
  yield frame("messageStart", { role: "assistant" })
  for (const [contentBlockIndex, part] of parts.entries()) {
    if (part.type === "call") {
      const toolUse = { toolUseId: part.id, name: part.name }
      yield frame("contentBlockStart", { contentBlockIndex, start: { toolUse } })
    }
    for (const delta of deltasOf(part)) yield frame("contentBlockDelta", { contentBlockIndex, delta })
    yield frame("contentBlockStop", { contentBlockIndex })
  }
  yield frame("messageStop", { stopReason: reasons[end] })
  yield frame("metadata", { usage, metrics: { latencyMs: 1 } })
}

const streamed = (speech: Reply, usage: object): Answer => ({
  status: 200,
  headers: { "content-type": "application/vnd.amazon.eventstream", "x-amzn-requestid": idOf("req") },
  pieces: frames(speech, usage),
  first: 3
})
