/** The official SDKs of Messages and Responses, and Vercel's `ai` over both, knowing nothing of us but an address and a key. */
import Anthropic, { AuthenticationError, BadRequestError, RateLimitError } from "@anthropic-ai/sdk"
import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person
let key: string

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
  key = await service.key(ada)
})

afterAll(() => service.discard())

/** 3 and 15 USD a million tokens. */
const costOf = (prompt: number, completion: number) => Number((prompt * 3e-6 + completion * 15e-6).toFixed(9))
const model = "sandbox-large"
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

describe("the Anthropic SDK", () => {
  // It sends its key as x-api-key.
  const client = () => new Anthropic({ apiKey: key, authToken: null, baseURL: service.url, maxRetries: 0 })
  const weather = {
    name: "weather",
    input_schema: { type: "object" as const, properties: { city: { type: "string" } } }
  }

  it("gets a message, and the charge is the vendor's count", async () => {
    const answer = await client().messages.create({
      model,
      max_tokens: 50,
      system: "Be brief.",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "one two" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } }
          ]
        }
      ]
    })
    expect(answer).toMatchObject({ type: "message", role: "assistant", stop_reason: "end_turn" })
    expect(answer.content).toMatchObject([{ type: "text", text: "one two" }])
    const { input_tokens, output_tokens } = answer.usage
    expect((await service.usage(ada))[0]).toMatchObject({
      endpoint: "messages",
      prompt_tokens: input_tokens,
      completion_tokens: output_tokens,
      cost: costOf(input_tokens, output_tokens)
    })
  })

  it("streams, with thoughts", async () => {
    const stream = client().messages.stream({
      model,
      max_tokens: 2_000,
      thinking: { type: "enabled", budget_tokens: 1_024 },
      messages: [{ role: "user", content: "alpha beta gamma" }]
    })
    let text = ""
    let thinking = ""
    stream.on("text", (piece) => (text += piece)).on("thinking", (piece) => (thinking += piece))
    const message = await stream.finalMessage()
    expect([text, thinking]).toEqual(["alpha beta gamma", "The same words again."])
    expect(message.usage.output_tokens).toBe(7)
    expect((await service.usage(ada))[0]).toMatchObject({ completion_tokens: 7, success: true })
  })

  it("calls a tool, and reads its result back", async () => {
    const asked = { role: "user" as const, content: 'call weather {"city":"Bern"}' }
    const first = await client().messages.create({ model, max_tokens: 50, tools: [weather], messages: [asked] })
    const [call] = first.content
    expect([first.stop_reason, call]).toMatchObject([
      "tool_use",
      { type: "tool_use", name: "weather", input: { city: "Bern" } }
    ])
    const second = await client().messages.create({
      model,
      max_tokens: 50,
      tools: [weather],
      messages: [
        asked,
        { role: "assistant", content: first.content },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: (call as { id: string }).id, content: "it rains" }]
        }
      ]
    })
    expect(second.content).toMatchObject([{ type: "text", text: "it rains" }])
  })

  it("counts tokens", async () => {
    const counted = await client().messages.countTokens({ model, messages: [{ role: "user", content: "a b c" }] })
    expect(counted.input_tokens).toBe(3)
  })

  it("knows our refusals by its own classes", async () => {
    const say = (client: Anthropic, more: object = {}) =>
      client.messages.create({ model, max_tokens: 5, messages: [{ role: "user", content: "hi" }], ...more })
    await expect(say(client(), { max_tokens: 0 })).rejects.toBeInstanceOf(BadRequestError)
    const stranger = new Anthropic({ apiKey: "nonsense", authToken: null, baseURL: service.url, maxRetries: 0 })
    await expect(say(stranger)).rejects.toBeInstanceOf(AuthenticationError)
    await service.control("/faults", { service: "messages", times: 1, status: 429, body: {} })
    await expect(say(client())).rejects.toBeInstanceOf(RateLimitError)
    await service.control("/faults", { service: "messages", times: 1, drop: true })
    const stream = client().messages.stream({ model, max_tokens: 50, messages: [{ role: "user", content: "a b c d" }] })
    await expect(stream.finalMessage()).rejects.toThrow("the model's stream ended early")
  })
})

describe("the openai package, over responses", () => {
  const client = () => new OpenAI({ apiKey: key, baseURL: `${service.url}/v1`, maxRetries: 0 })
  const weather = { type: "function" as const, name: "weather", parameters: { type: "object" }, strict: false }

  it("gets a response, and the charge is the vendor's count", async () => {
    const answer = await client().responses.create({
      model,
      instructions: "Be brief.",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "one two" },
            { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "auto" }
          ]
        }
      ]
    })
    expect(answer).toMatchObject({ output_text: "one two", status: "completed", store: false })
    const { input_tokens, output_tokens } = answer.usage!
    expect((await service.usage(ada))[0]).toMatchObject({
      endpoint: "responses",
      prompt_tokens: input_tokens,
      completion_tokens: output_tokens,
      cost: costOf(input_tokens, output_tokens)
    })
  })

  it("streams, with reasoning", async () => {
    const stream = await client().responses.create({
      model,
      input: "alpha beta",
      reasoning: { effort: "low", summary: "auto" },
      stream: true
    })
    let text = ""
    let last = ""
    for await (const event of stream) {
      last = event.type
      if (event.type === "response.output_text.delta") text += event.delta
    }
    expect([text, last]).toEqual(["alpha beta", "response.completed"])
    expect((await service.usage(ada))[0]).toMatchObject({
      completion_tokens: 6,
      token_details: { reasoning_tokens: 4 }
    })
  })

  it("calls a tool, and reads its result back", async () => {
    const asked = { role: "user" as const, content: 'call weather {"city":"Bern"}' }
    const first = await client().responses.create({ model, input: [asked], tools: [weather] })
    const [call] = first.output
    expect(call).toMatchObject({ type: "function_call", name: "weather", arguments: '{"city":"Bern"}' })
    const { call_id } = call as { call_id: string }
    const second = await client().responses.create({
      model,
      input: [asked, ...(first.output as never[]), { type: "function_call_output", call_id, output: "it rains" }],
      tools: [weather]
    })
    expect(second.output_text).toBe("it rains")
  })

  it("hears of refusals and of a broken stream", async () => {
    const going = client().responses.create({ model, input: "hi", previous_response_id: "resp_1" })
    await expect(going).rejects.toMatchObject({ status: 400, param: "previous_response_id", code: "invalid_request" })
    await service.control("/faults", { service: "responses", times: 1, drop: true })
    const stream = await client().responses.create({ model, input: "a b c d e", stream: true })
    const read = async () => {
      for await (const event of stream) void event
    }
    await expect(read()).rejects.toThrow("the model's stream ended early")
  })
})

describe("Vercel's ai", () => {
  const providers = {
    anthropic: () => createAnthropic({ apiKey: key, baseURL: `${service.url}/v1` })(model),
    openai: () => createOpenAI({ apiKey: key, baseURL: `${service.url}/v1` }).responses(model),
    "openai, over chat": () => createOpenAI({ apiKey: key, baseURL: `${service.url}/v1` }).chat(model),
    "compatible servers": () =>
      createOpenAICompatible({ name: "tollgate", apiKey: key, baseURL: `${service.url}/v1`, includeUsage: true })(model)
  } as const

  it.each(Object.entries(providers))("writes and streams text by its provider of %s", async (_, provider) => {
    const { text, usage } = await generateText({ model: provider(), prompt: "one two three", maxRetries: 0 })
    expect([text, usage.inputTokens, usage.outputTokens]).toEqual(["one two three", 3, 3])
    const stream = streamText({ model: provider(), prompt: "alpha beta", maxRetries: 0 })
    expect(await stream.text).toBe("alpha beta")
    expect((await service.usage(ada))[0]).toMatchObject({ success: true, prompt_tokens: 2, completion_tokens: 2 })
  })

  it.each(Object.entries(providers))("goes on after a tool by its provider of %s", async (_, provider) => {
    const { steps, text } = await generateText({
      model: provider(),
      prompt: 'call weather {"city":"Bern"}',
      // What is not kept cannot be named by its id.
      providerOptions: { openai: { store: false } },
      stopWhen: stepCountIs(3),
      maxRetries: 0,
      tools: {
        weather: tool({
          inputSchema: jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } }),
          execute: async ({ city }) => `it rains in ${city}`
        })
      }
    })
    expect(steps.length).toBe(2)
    expect(text).toContain("it rains in Bern")
  })
})
