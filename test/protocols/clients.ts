/** The SDKs that people use, given what a service would send them. */
import Anthropic from "@anthropic-ai/sdk"
import OpenAI from "openai"
import type { Client } from "./answers.ts"
import { response } from "./sse.ts"

type Json = Readonly<Record<string, unknown>>

const openai = (answer: () => Response): OpenAI =>
  new OpenAI({ apiKey: "k", baseURL: "http://localhost/v1", maxRetries: 0, fetch: () => Promise.resolve(answer()) })

const anthropic = (answer: () => Response): Anthropic =>
  new Anthropic({ apiKey: "k", baseURL: "http://localhost", maxRetries: 0, fetch: () => Promise.resolve(answer()) })

/** The whole answer that the SDK makes of a stream; it fails where the SDK does. */
export const streamed: Readonly<Record<Client, (text: string) => Promise<Json>>> = {
  chat: async (text) =>
    (await openai(() => response(text))
      .chat.completions.stream({
        model: "m",
        messages: [{ role: "user", content: "Hi" }],
        stream_options: { include_usage: true }
      })
      .finalChatCompletion()) as unknown as Json,
  messages: async (text) =>
    (await anthropic(() => response(text))
      .messages.stream({ model: "m", max_tokens: 10, messages: [{ role: "user", content: "Hi" }] })
      .finalMessage()) as unknown as Json,
  responses: async (text) =>
    (await openai(() => response(text))
      .responses.stream({ model: "m", input: "Hi" })
      .finalResponse()) as unknown as Json
}

const text = (json: Json) => response(JSON.stringify(json), "application/json")

/** The same of an answer that is sent whole. */
export const whole: Readonly<Record<Client, (json: Json) => Promise<Json>>> = {
  chat: async (json) =>
    (await openai(() => text(json)).chat.completions.create({
      model: "m",
      messages: [{ role: "user", content: "Hi" }]
    })) as unknown as Json,
  messages: async (json) =>
    (await anthropic(() => text(json)).messages.create({
      model: "m",
      max_tokens: 10,
      messages: [{ role: "user", content: "Hi" }]
    })) as unknown as Json,
  responses: async (json) =>
    (await openai(() => text(json)).responses.create({ model: "m", input: "Hi" })) as unknown as Json
}
