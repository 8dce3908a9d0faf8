/** The vendor of chat and completions, through the vendor's own client and on the wire. */
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { open } from "./Scene.ts"
import type { Answer, Scene } from "./Scene.ts"

let scene: Scene
let client: OpenAI

beforeAll(async () => {
  scene = await open()
  client = new OpenAI({ apiKey: "key", baseURL: `${scene.url}/chat-a/v1`, maxRetries: 0 })
})

afterAll(() => scene.close())

const user = (content: string) => ({ role: "user", content }) as const

const chat = (body: object): Promise<Answer> =>
  scene.call("/chat-a/v1/chat/completions", { model: "sandbox-small", messages: [user("one two three")], ...body })

const complete = (body: object): Promise<Answer> =>
  scene.call("/chat-a/v1/completions", { model: "sandbox-small", prompt: "one two three", ...body })

/** The events of a stream as sent on the wire. */
const eventsOf = ({ text }: Answer): ReadonlyArray<string> => {
  expect(text.endsWith("\n\n")).toBe(true)
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((event) => event.replace(/^data: /, ""))
}

describe("chat", () => {
  it("repeats the last user message and counts the words of all", async () => {
    const answer = await client.chat.completions.create({
      model: "sandbox-small",
      messages: [
        { role: "system", content: "be brief" },
        user("first"),
        { role: "assistant", content: "ok" },
        user("a  b\nc")
      ]
    })
    expect(answer).toMatchObject({
      object: "chat.completion",
      model: "sandbox-small",
      choices: [{ index: 0, message: { role: "assistant", content: "a  b\nc" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
    })
    expect(answer.id).toMatch(/^chatcmpl-/)
    expect(Number.isInteger(answer.created)).toBe(true)
  })

  it("reads the text of parts", async () => {
    const { body } = await chat({
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "look at" },
            { type: "image_url", image_url: { url: "x y z" } }
          ]
        }
      ]
    })
    expect(body.choices[0].message.content).toBe("look at")
    expect(body.usage.prompt_tokens).toBe(2)
  })

  it("stops at max_tokens, and gives n answers", async () => {
    for (const limit of ["max_tokens", "max_completion_tokens"]) {
      const { body } = await chat({ [limit]: 2, n: 3 })
      expect(body.choices.map(({ index }: { index: number }) => index)).toEqual([0, 1, 2])
      for (const choice of body.choices) {
        expect(choice).toMatchObject({ message: { content: "one two" }, finish_reason: "length" })
      }
      expect(body.usage).toEqual({ prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 })
    }
    expect((await chat({ max_tokens: 3 })).body.choices[0].finish_reason).toBe("stop")
  })

  it("answers an empty prompt with nothing", async () => {
    for (const messages of [
      [{ role: "system", content: "x" }],
      [user("")],
      [user(" \n ")],
      [{ role: "user", content: null }]
    ]) {
      const { body } = await chat({ messages })
      expect(body.choices[0]).toMatchObject({ message: { content: "" }, finish_reason: "stop" })
      expect(body.usage.completion_tokens).toBe(0)
    }
  })

  it("streams word by word in the vendor's framing", async () => {
    const answer = await chat({ stream: true })
    expect(answer.headers.get("content-type")).toMatch(/^text\/event-stream/)
    const events = eventsOf(answer)
    expect(events.at(-1)).toBe("[DONE]")
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event))
    expect(chunks.map(({ choices }) => choices[0].delta)).toEqual([
      { role: "assistant", content: "", refusal: null },
      { content: "one" },
      { content: " two" },
      { content: " three" },
      {}
    ])
    expect(chunks.map(({ choices }) => choices[0].finish_reason)).toEqual([null, null, null, null, "stop"])
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    for (const chunk of chunks) {
      expect(chunk.object).toBe("chat.completion.chunk")
      expect(chunk).not.toHaveProperty("usage")
    }
  })

  it("streams to the vendor's own client, with usage at the end on request", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox-small",
      messages: [user(`quotes " and 😀 umlauts ü`)],
      max_tokens: 4,
      n: 2,
      stream: true,
      stream_options: { include_usage: true }
    })
    const texts = ["", ""]
    const usages = []
    for await (const { choices, usage } of stream) {
      for (const { delta, index } of choices) texts[index] += delta.content ?? ""
      usages.push(usage)
      if (usage !== null) expect(choices).toEqual([])
    }
    expect(texts).toEqual([`quotes " and 😀`, `quotes " and 😀`])
    expect(usages.at(-1)).toEqual({ prompt_tokens: 6, completion_tokens: 8, total_tokens: 14 })
    expect(usages.slice(0, -1).every((usage) => usage === null)).toBe(true)
  })

  it("streams a long answer whole", async () => {
    const content = Array.from({ length: 50_000 }, (_, i) => `w${i}`).join(" ")
    const stream = await client.chat.completions.create({ model: "m", messages: [user(content)], stream: true })
    const texts: Array<string> = []
    for await (const { choices } of stream) texts.push(choices[0]?.delta.content ?? "")
    expect(texts.join("")).toBe(content)
  })

  it("refuses as the vendor does", async () => {
    const { body, status } = await scene.call("/chat-a/v1/chat/completions", {}, { headers: { authorization: "" } })
    expect(status).toBe(401)
    expect(body.error).toMatchObject({ type: "invalid_request_error", param: null, code: null })
    expect(body.error.message).toMatch(/API key/)
    for (const [wrong, param] of [
      [{ model: undefined }, "model"],
      [{ messages: [] }, "messages"],
      [{ messages: ["x"] }, "messages"],
      [{ messages: [{ role: "user", content: 3 }] }, "messages"],
      [{ max_tokens: 0 }, "max_tokens"],
      [{ n: 1000 }, "n"]
    ] as const) {
      const refused = await chat(wrong)
      expect(refused.status).toBe(400)
      expect(refused.body.error).toMatchObject({ type: "invalid_request_error", param })
    }
    const long = await chat({ messages: [user("x ".repeat(128_001))] })
    expect(long.status).toBe(400)
    expect(long.body.error.code).toBe("context_length_exceeded")
  })
})

describe("completions", () => {
  it("repeat the prompt", async () => {
    const answer = await client.completions.create({ model: "sandbox-small", prompt: "say this" })
    expect(answer).toMatchObject({
      object: "text_completion",
      choices: [{ index: 0, text: "say this", logprobs: null, finish_reason: "stop" }],
      usage: { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 }
    })
  })

  it("are 16 tokens long by default, like the vendor's", async () => {
    const prompt = "x ".repeat(20)
    expect((await complete({ prompt })).body).toMatchObject({
      choices: [{ finish_reason: "length" }],
      usage: { completion_tokens: 16 }
    })
    expect((await complete({ prompt, max_tokens: 100 })).body.usage.completion_tokens).toBe(20)
  })

  it("take several prompts, tokens, n, best_of and echo", async () => {
    const several = await complete({ prompt: ["a b", "c"], n: 2, best_of: 3 })
    expect(several.body.choices.map(({ index, text }: { index: number; text: string }) => [index, text])).toEqual([
      [0, "a b"],
      [1, "a b"],
      [2, "c"],
      [3, "c"]
    ])
    expect(several.body.usage).toEqual({ prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 })
    expect((await complete({ prompt: [1, 2, 3] })).body).toMatchObject({
      choices: [{ text: "1 2 3" }],
      usage: { prompt_tokens: 3 }
    })
    expect((await complete({ prompt: [[1], [2, 3]] })).body.choices).toHaveLength(2)
    expect((await complete({ prompt: "p", echo: true })).body.choices[0].text).toBe("pp")
    expect((await complete({ prompt: {} })).status).toBe(400)
    expect((await complete({ n: 3, best_of: 2 })).status).toBe(400)
  })

  it("stream", async () => {
    const stream = await client.completions.create({
      model: "sandbox-small",
      prompt: "one two three",
      max_tokens: 2,
      stream: true,
      stream_options: { include_usage: true }
    })
    const chunks = []
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks.flatMap(({ choices }) => choices.map(({ text }) => text))).toEqual(["one", " two", ""])
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("length")
    expect(chunks.at(-1)).toMatchObject({
      object: "text_completion",
      choices: [],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
    })
  })
})

describe("models", () => {
  it("are listed, at both addresses", async () => {
    for (const name of ["chat-a", "chat-b"]) {
      const { body } = await scene.call(`/${name}/v1/models`)
      expect(body.object).toBe("list")
      expect(body.data.map(({ id }: { id: string }) => id)).toEqual([
        "sandbox-small",
        "sandbox-large",
        "sandbox-fraction",
        "sandbox-failover"
      ])
    }
  })
})
