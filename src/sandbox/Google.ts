/**
 * A model vendor that uses Google's Gemini protocol. It replies with `Echo`, adds reasoning if the request enables it, signs its tool calls, and
 * caches a prompt's instructions.
 */
import { Effect } from "effect"
import { contextLength } from "./Chat.ts"
import { json, jsonBody, listOf, objectOf, Refusal } from "./Outside.ts"
import type { Answer, Body, Make, Received } from "./Outside.ts"
import { promptCache, countWords, cut, idOf, replyTo } from "./Echo.ts"
import type { CacheUse, Part, Reply } from "./Echo.ts"

const mount = "/google/v1beta"

export const make: Make = ({ origin }) => {
  const cached = promptCache()
  const ask = (received: Received) => answer(received, cached)
  return Effect.succeed({
    // The model and the method share one path segment, separated by a colon.
    routes: [{ method: "POST", path: `${mount}/models/{call}`, answer: ask }],
    configuration: {
      upstreams: { "sandbox-google": { base_url: origin + mount, api_key: "sandbox", speaks: ["google"] } },
      models: [
        {
          id: "sandbox-google",
          name: "Sandbox Google",
          description: "Repeats the prompt, over Gemini's protocol",
          owned_by: "sandbox",
          context_length: contextLength,
          max_output_tokens: 4096,
          price: {
            prompt_usd_per_million: "3",
            completion_usd_per_million: "15",
            cached_prompt_usd_per_million: "0.3"
          },
          upstreams: [{ upstream: "sandbox-google", model: "gemini-3-sandbox" }]
        }
      ]
    }
  })
}

// ---- the request --------------------------------------------------------------------------------------------------------------

const refuse = (code: number, status: string, message: string): Refusal =>
  new Refusal(json(code, { error: { code, message, status } }))

const wrong = (message: string): Refusal => refuse(400, "INVALID_ARGUMENT", message)

const bodyOf = ({ body, headers }: Received): Body => {
  if ((headers["x-goog-api-key"] ?? "") === "")
    throw refuse(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers. Please use an API key.")
  const parsed = jsonBody(
    body,
    wrong,
    "Invalid JSON payload received.",
    "Invalid JSON payload received. Expected an object."
  )
  if (listOf(parsed.contents).length === 0) throw wrong("contents is not specified")
  return parsed
}

/** Returns the text of a part. An image counts as one word. */
const textOf = (part: unknown): string => {
  const { functionResponse, inlineData, text } = objectOf(part)
  if (inlineData !== undefined) return "image"
  const { error, output } = objectOf(objectOf(functionResponse).response)
  return [text, output, error].filter((one) => typeof one === "string").join(" ")
}

const partsOf = (content: unknown): ReadonlyArray<unknown> => listOf(objectOf(content).parts)

interface Prompt {
  /** The last message. The model repeats it. */
  readonly said: string
  readonly words: number
  readonly instructions: string
}

const promptOf = ({ contents, systemInstruction, tools }: Body): Prompt => {
  const turns = listOf(contents)
  const instructions = partsOf(systemInstruction).map(textOf).join(" ")
  const words = countWords(
    [
      instructions,
      ...turns.flatMap((turn) => partsOf(turn).map(textOf)),
      ...listOf(tools).map((one) => JSON.stringify(one))
    ].join(" ")
  )
  if (words > contextLength) throw wrong(`The input token count (${words}) exceeds the maximum (${contextLength}).`)
  const last = partsOf(turns.at(-1)).filter((part) => objectOf(part).inlineData === undefined)
  return { said: last.map(textOf).join("\n"), words, instructions }
}

const namesOf = (tools: unknown): ReadonlySet<string> =>
  new Set(
    listOf(tools).flatMap((one) =>
      listOf(objectOf(one).functionDeclarations).map((declared) => String(objectOf(declared).name))
    )
  )

// ---- the response ---------------------------------------------------------------------------------------------------------

const answer = (received: Received, cached: (text: string) => CacheUse): Answer => {
  const [model = "", method] = (received.params["call"] ?? "").split(":")
  if (method !== "generateContent" && method !== "streamGenerateContent")
    throw refuse(404, "NOT_FOUND", `Method not found: ${String(method)}`)
  const body = bodyOf(received)
  const { instructions, said, words } = promptOf(body)
  const { maxOutputTokens, thinkingConfig } = objectOf(body.generationConfig)
  const { thinkingBudget, thinkingLevel } = objectOf(thinkingConfig)
  const thinks = (thinkingBudget ?? thinkingLevel) !== undefined && thinkingBudget !== 0
  const limit = typeof maxOutputTokens === "number" ? maxOutputTokens : undefined
  const speech = replyTo(said, { limit, tools: namesOf(body.tools), thinks })
  const { read } = instructions === "" ? { read: 0 } : cached(instructions)
  const usageMetadata = {
    promptTokenCount: words,
    candidatesTokenCount: speech.words - speech.thoughts,
    ...(speech.thoughts > 0 && { thoughtsTokenCount: speech.thoughts }),
    ...(read > 0 && { cachedContentTokenCount: read }),
    totalTokenCount: words + speech.words
  }
  const head = { modelVersion: model, responseId: idOf("gen") }
  if (method === "streamGenerateContent") return streamed(received, head, speech, usageMetadata)
  const content = { role: "model", parts: speech.parts.map(partFor) }
  return json(200, {
    candidates: [{ content, finishReason: reasons[speech.end], index: 0 }],
    usageMetadata,
    ...head
  })
}

const reasons = { stop: "STOP", length: "MAX_TOKENS", tools: "STOP" } as const
const thoughtSignature = "c2FuZGJveA=="

const partFor = (part: Part): object => {
  switch (part.type) {
    case "thought":
      return { text: part.text, thought: true }
    case "text":
      return { text: part.text }
    case "call":
      return {
        functionCall: { id: part.id, name: part.name, args: JSON.parse(part.input) as unknown },
        thoughtSignature
      }
  }
}

/** Splits a part into its deltas: each word of a text, or a complete call. */
const piecesOf = (part: Part): ReadonlyArray<object> =>
  part.type === "call" ? [partFor(part)] : cut(part.text).map((text) => partFor({ type: part.type, text }))

const streamed = ({ query }: Received, head: object, { end, parts }: Reply, usageMetadata: object): Answer => {
  if (query.get("alt") !== "sse") throw wrong("this vendor streams server-sent events only: alt=sse")
  const pieces = parts.flatMap(piecesOf)
  const events = (pieces.length === 0 ? [{ text: "" }] : pieces).map((part, i, all) => ({
    candidates: [
      {
        content: { role: "model", parts: [part] },
        ...(i === all.length - 1 && { finishReason: reasons[end] }),
        index: 0
      }
    ],
    ...(i === all.length - 1 && { usageMetadata }),
    ...head
  }))
  return {
    status: 200,
    headers: { "content-type": "text/event-stream", "cache-control": "no-cache" },
    pieces: events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`),
    first: Math.min(3, events.length - 1)
  }
}
