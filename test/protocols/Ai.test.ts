/** What Vercel's `ai` makes of the streams that the protocols write, with its providers of OpenAI, Anthropic and compatible servers. */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { jsonSchema, streamText, tool } from "ai"
import type { LanguageModel, ModelMessage, ToolSet } from "ai"
import { describe, expect, it } from "vitest"
import type { Protocol } from "../../src/protocols/conversation/Conversation.ts"
import type { Delta } from "../../src/protocols/conversation/Delta.ts"
import { translations } from "../../src/protocols/Protocols.ts"
import type { RequestOptions, StreamOptions } from "../../src/protocols/conversation/Translation.ts"
import { streams } from "./answers.ts"
import type { Client } from "./answers.ts"
import { response, stepsOf, textOf } from "./sse.ts"

const vendors = Object.keys(streams) as ReadonlyArray<Protocol>
const answering: StreamOptions = { id: "x", model: "m", created: 1, request: {}, include_usage: true }
const asking: RequestOptions = { model: "m", limit: 100, limit_field: "max_tokens", stream: true }

/** A model whose service answers with this text; its requests are noted. */
const models: Readonly<Record<Client, (text: string, bodies: Array<unknown>) => LanguageModel>> = {
  chat: (text, bodies) =>
    createOpenAICompatible({ name: "t", apiKey: "k", baseURL: "http://localhost/v1", ...fetching(text, bodies) })("m"),
  messages: (text, bodies) =>
    createAnthropic({ apiKey: "k", baseURL: "http://localhost/v1", ...fetching(text, bodies) })("m"),
  responses: (text, bodies) =>
    createOpenAI({ apiKey: "k", baseURL: "http://localhost/v1", ...fetching(text, bodies) }).responses("m")
}

const fetching = (text: string, bodies: Array<unknown>) => ({
  fetch: (_url: unknown, init?: RequestInit) => {
    bodies.push(JSON.parse(String(init?.body)))
    return Promise.resolve(response(text))
  }
})

const none = jsonSchema({ type: "object", properties: {} })
const tools = { weather: tool({ inputSchema: none }), now: tool({ inputSchema: none }) } as unknown as ToolSet

/** By default the provider refers to what it thinks is stored, which is refused. */
const providerOptions = { openai: { store: false } }

const asked: ReadonlyArray<ModelMessage> = [{ role: "user", content: "Hi" }]

/** What a program has of the stream, the conversation with the answer in it, and what was sent. */
const streamed = async (client: Client, text: string, messages: ReadonlyArray<ModelMessage> = asked) => {
  const bodies: Array<unknown> = []
  const failures: Array<unknown> = []
  const model = models[client](text, bodies)
  const onError = ({ error }: { readonly error: unknown }) => void failures.push(error)
  const result = streamText({ model, messages: [...messages], tools, maxRetries: 0, onError, providerOptions })
  await result.consumeStream()
  return { result, failures, bodies }
}

describe("ai", () => {
  for (const vendor of vendors)
    for (const client of ["chat", "messages", "responses"] as const)
      it(`reads ${vendor} as ${client}`, async () => {
        const text = textOf(
          translations[client].writer(answering),
          stepsOf(translations[vendor].reader(), streams[vendor])
        )
        const { failures, result } = await streamed(client, text)
        expect(failures).toEqual([])
        expect(await result.text).toBe("Let me see.")
        expect(
          (await result.toolCalls).map(({ input, toolCallId, toolName }) => [toolCallId, toolName, input])
        ).toEqual([
          ["call_1", "weather", { city: "Bern" }],
          ["call_2", "now", {}]
        ])
        expect(await result.finishReason).toBe("tool-calls")
        expect(await result.usage).toMatchObject({ inputTokens: 100, outputTokens: 20 })
      })

  for (const client of ["chat", "messages", "responses"] as const)
    it(`has the error of a stream that breaks, as ${client}`, async () => {
      const cut = stepsOf(translations.messages.reader(), streams.messages.slice(0, 5))
      const { failures } = await streamed(client, textOf(translations[client].writer(answering), cut))
      expect(failures.length).toBeGreaterThan(0)
      expect(JSON.stringify(failures)).toContain("the upstream's stream was truncated")
    })

  for (const client of ["messages", "responses"] as const)
    it(`gives thoughts back to their vendor, as ${client}`, async () => {
      const thought: ReadonlyArray<Delta> = [
        { type: "start", id: undefined, model: undefined, usage: undefined },
        { type: "thinking_start", index: 0, signer: "google", redacted: false },
        { type: "piece", index: 0, text: "Hm" },
        { type: "signature", index: 0, text: "c2lnbmVk" },
        { type: "part_end", index: 0 },
        { type: "text_start", index: 1 },
        { type: "piece", index: 1, text: "Yes" },
        { type: "part_end", index: 1 },
        { type: "stop", reason: "end", sequence: undefined },
        { type: "end" }
      ]
      const text = textOf(translations[client].writer(answering), thought)
      const { result } = await streamed(client, text)
      expect(await result.reasoningText).toBe("Hm")
      const answered = (await result.response).messages
      const { bodies } = await streamed(client, text, [...asked, ...answered, { role: "user", content: "So" }])
      const conversation = translations[client].readRequest(bodies[0]).pipe((read) => {
        if (read._tag === "Left") throw new Error(`${read.left.field}: ${read.left.why}`)
        return read.right
      })
      const body = JSON.stringify(translations.google.writeRequest(conversation, { ...asking, model: "gemini-3" }))
      expect(body).toContain('"thoughtSignature":"c2lnbmVk"')
      expect(body).toContain('"text":"Hm"')
      expect(JSON.stringify(translations.messages.writeRequest(conversation, asking))).not.toContain("c2lnbmVk")
    })
})
