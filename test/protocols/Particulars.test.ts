/** What is carried, left out and refused, where the heads of `src/protocols/conversation` say it. */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { answerOf, deltasOf } from "../../src/protocols/conversation/Answer.ts"
import type { Protocol } from "../../src/protocols/conversation/Conversation.ts"
import { translations } from "../../src/protocols/Protocols.ts"
import { isForeign } from "../../src/protocols/conversation/Thoughts.ts"
import type { RequestOptions, StreamOptions } from "../../src/protocols/conversation/Translation.ts"
import { stepsOf, textOf } from "./sse.ts"

type Json = Readonly<Record<string, unknown>>

const asking: RequestOptions = { model: "m", limit: 4000, limit_field: "max_tokens", stream: false }
const answering: StreamOptions = { id: "x", model: "m", created: 1, request: {}, include_usage: true }

/** The vendor's body, or the refusal. */
const translated = (client: Protocol, vendor: Protocol, body: Json, asked: Partial<RequestOptions> = {}): Json =>
  translations[client].readRequest(body).pipe(
    Either.flatMap((conversation) => translations[vendor].writeRequest(conversation, { ...asking, ...asked })),
    Either.match({ onLeft: ({ field, why }) => ({ refused: `${field}: ${why}` }), onRight: (json) => json })
  )

const chat = (more: Json): Json => ({ model: "m", messages: [{ role: "user", content: "Hi" }], ...more })
const messages = (more: Json): Json => ({
  model: "m",
  max_tokens: 10,
  messages: [{ role: "user", content: "Hi" }],
  ...more
})
const responses = (more: Json): Json => ({ model: "m", input: "Hi", ...more })

describe("refused by name", () => {
  const of: ReadonlyArray<readonly [Protocol, Protocol, Json, string]> = [
    ["responses", "chat", responses({ previous_response_id: "resp_1" }), "previous_response_id: the upstream"],
    ["responses", "chat", responses({ conversation: "c" }), "conversation: "],
    ["responses", "chat", responses({ background: true }), "background: "],
    ["responses", "messages", responses({ tools: [{ type: "web_search" }] }), "tools.0.type: web_search is a tool"],
    ["responses", "chat", responses({ input: [{ type: "item_reference", id: "i" }] }), "input.0: "],
    ["responses", "chat", responses({ input: [{ type: "mcp_call" }] }), "input.0.type: the upstream"],
    ["responses", "google", responses({ tools: [{ type: "custom", name: "patch" }] }), "tools.0: "],
    [
      "messages",
      "chat",
      messages({ tools: [{ type: "web_search_20250305", name: "web_search" }] }),
      "tools.0.type: web_search_20250305 is a tool that the upstream of this model does not have"
    ],
    ["messages", "chat", messages({ mcp_servers: [{ type: "url" }] }), "mcp_servers: "],
    ["messages", "chat", messages({ container: "c" }), "container: "],
    [
      "messages",
      "google",
      messages({ messages: [{ role: "user", content: [{ type: "search_result" }] }] }),
      "messages.0.content.0: the upstream of this model accepts no search_result"
    ],
    [
      "messages",
      "chat",
      messages({ messages: [...(messages({}).messages as []), { role: "assistant", content: "It is" }] }),
      "messages.1: the upstream of this model does not continue"
    ],
    ["chat", "messages", chat({ n: 2 }), "n: the upstream of this model returns only one answer"],
    ["chat", "messages", chat({ logprobs: true }), "logprobs: "],
    ["chat", "messages", chat({ logit_bias: { "50256": -100 } }), "logit_bias: "],
    ["chat", "messages", chat({ temperature: 1.5 }), "temperature: the upstream of this model requires"],
    ["chat", "messages", chat({ response_format: { type: "json_object" } }), "response_format: "],
    ["chat", "messages", chat({ web_search_options: {} }), "web_search_options: "],
    ["chat", "messages", chat({ modalities: ["text", "audio"] }), "modalities: "],
    ["chat", "google", chat({ service_tier: "priority" }), "service_tier: "],
    ...[
      "https://www.youtube.com/watch?v=abc",
      "https://a.example/b.pdf",
      "https://a.example/b.mp4?c.png",
      "https://a.example/b",
      "gs://bucket/b.png"
    ].map(
      (url) =>
        [
          "chat",
          "google",
          chat({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] }),
          "messages.0.content.0: the upstream of this model accepts an image as data"
        ] as const
    ),
    [
      "chat",
      "messages",
      chat({
        messages: [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "a", format: "wav" } }] }]
      }),
      "messages.0.content.0: the upstream of this model accepts no audio"
    ],
    [
      "chat",
      "google",
      chat({ messages: [{ role: "tool", tool_call_id: "call_9", content: "x" }] }),
      "messages.0: no call has this id"
    ]
  ]
  for (const [client, vendor, body, why] of of)
    it(`${client} to ${vendor}: ${why}`, () => {
      expect(translated(client, vendor, body).refused).toMatch(new RegExp(`^${why.replaceAll(".", "\\.")}`))
    })
})

describe("left out, since it says how and not what", () => {
  it("store, metadata and their like", () => {
    const { messages: _said, ...rest } = translated(
      "chat",
      "messages",
      chat({ store: true, metadata: { a: "b" }, seed: 1, presence_penalty: 1, service_tier: "auto", verbosity: "low" })
    )
    expect(rest).toEqual({ model: "m", max_tokens: 4000 })
  })

  it("an answer of Responses is not stored, whatever was asked", () => {
    const body = responses({ store: true, metadata: { a: "b" }, temperature: 0.5 })
    expect(translated("responses", "messages", body)).not.toHaveProperty("store")
    const answer = { id: undefined, model: undefined, parts: [], stop: "end", stop_sequence: undefined } as const
    const written = translations.responses.writeAnswer({ ...answer, usage: undefined }, { ...answering, request: body })
    expect(written).toMatchObject({ store: false, metadata: { a: "b" }, temperature: 0.5, previous_response_id: null })
  })
})

describe("who asks", () => {
  it("is named in 64 plain letters where Messages say it at length, as Claude Code does", () => {
    const session = (id: string) => JSON.stringify({ device_id: "d".repeat(64), account_uuid: "", session_id: id })
    for (const vendor of ["chat", "responses"] as const) {
      const userOf = (user_id: string) => translated("messages", vendor, messages({ metadata: { user_id } })).user
      expect(userOf("user_1")).toBe("user_1")
      expect(userOf(session("a"))).toMatch(/^[\w-]{1,64}$/)
      expect(userOf(session("a"))).toBe(userOf(session("a")))
      expect(userOf(session("a"))).not.toBe(userOf(session("b")))
      expect(translated("chat", vendor, chat({ user: "me@example.com" })).user).toBe("me@example.com")
    }
  })
})

describe("tools in namespaces", () => {
  const tool = { type: "function", name: "close", parameters: { type: "object" } }
  const call = { type: "function_call", call_id: "c1", name: "close", namespace: "agents", arguments: "{}" }
  const body = responses({
    tools: [{ type: "namespace", name: "agents", description: "Agents", tools: [tool] }],
    tool_choice: { type: "function", name: "close", namespace: "agents" },
    input: [{ role: "user", content: "Hi" }, call, { type: "function_call_output", call_id: "c1", output: "closed" }]
  })

  it("have their namespace in front of their names for others", () => {
    const { messages, tool_choice, tools } = translated("responses", "chat", body)
    expect(tools).toMatchObject([{ type: "function", function: { name: "agents__close" } }])
    expect(tool_choice).toEqual({ type: "function", function: { name: "agents__close" } })
    expect((messages as ReadonlyArray<Json>)[1]).toMatchObject({
      tool_calls: [{ id: "c1", function: { name: "agents__close", arguments: "{}" } }]
    })
  })

  it("are called in them again, whole and in events", () => {
    const part = { type: "tool_call", id: "c2", name: "agents__close", arguments: "{}", custom: false } as const
    const answer = { id: undefined, model: undefined, parts: [part], stop: "tool", stop_sequence: undefined } as const
    const options = { ...answering, request: body }
    const named = { type: "function_call", call_id: "c2", name: "close", namespace: "agents" }
    expect(translations.responses.writeAnswer({ ...answer, usage: undefined }, options)).toMatchObject({
      output: [named]
    })
    const text = textOf(translations.responses.writer(options), deltasOf({ ...answer, usage: undefined }))
    expect(text).toContain('"name":"close","namespace":"agents"')
    expect(text).not.toContain("agents__close")
  })
})

describe("arguments that are no JSON", () => {
  const wrong = (vendor: Protocol) =>
    translated(
      "chat",
      vendor,
      chat({
        messages: [
          { role: "user", content: "Hi" },
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "a.b", type: "function", function: { name: "f", arguments: '{"a":' } }]
          },
          { role: "tool", tool_call_id: "a.b", content: "wrong" }
        ]
      })
    )

  it("go into an object as a text, and their ids are made to fit, alike in call and result", () => {
    const [, called, result] = wrong("messages").messages as ReadonlyArray<{ content: ReadonlyArray<Json> }>
    expect(called!.content[0]).toMatchObject({ type: "tool_use", input: { INVALID_JSON: '{"a":' } })
    expect(called!.content[0]!.id).toMatch(/^[\w-]+$/)
    expect(result!.content[0]!.tool_use_id).toBe(called!.content[0]!.id)
  })

  it("come out of it as that text", () => {
    const back = translations.messages.readRequest({ max_tokens: 1, ...wrong("messages") })
    const body = Either.getOrThrow(translations.chat.writeRequest(Either.getOrThrow(back), asking)) as {
      messages: ReadonlyArray<{ tool_calls?: ReadonlyArray<{ function: Json }> }>
    }
    expect(body.messages[1]!.tool_calls![0]!.function.arguments).toBe('{"a":')
  })
})

describe("results of tools", () => {
  const body = messages({
    messages: [
      { role: "user", content: "Look" },
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "t1", name: "see", input: {} },
          { type: "tool_use", id: "t2", name: "see", input: {} }
        ]
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "t1",
            content: [
              { type: "text", text: "a cat" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } }
            ]
          },
          { type: "tool_result", tool_use_id: "t2", is_error: true, content: "no file" }
        ]
      }
    ]
  })

  it("of chat are texts; the user shows their images after all of them", () => {
    expect((translated("messages", "chat", body).messages as ReadonlyArray<Json>).slice(2)).toEqual([
      { role: "tool", tool_call_id: "t1", content: "a cat" },
      { role: "tool", tool_call_id: "t2", content: "no file" },
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } }] }
    ])
  })

  it("are errors where the vendor has a word for it", () => {
    expect(JSON.stringify(translated("messages", "google", body))).toContain('"response":{"error":"no file"}')
    expect(JSON.stringify(translated("messages", "bedrock", body))).toContain('"status":"error"')
  })
})

describe("cache marks", () => {
  const body = messages({
    system: [{ type: "text", text: "Long", cache_control: { type: "ephemeral", ttl: "1h" } }],
    tools: [{ name: "f", input_schema: { type: "object" }, cache_control: { type: "ephemeral" } }],
    messages: [{ role: "user", content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }] }]
  })

  it("are Bedrock's cache points for models that have a cache, and left out elsewhere", () => {
    expect(translated("messages", "bedrock", body, { model: "anthropic.claude-opus-4-6" })).toMatchObject({
      system: [{ text: "Long" }, { cachePoint: { type: "default", ttl: "1h" } }],
      messages: [{ content: [{ text: "Hi" }, { cachePoint: { type: "default" } }] }],
      toolConfig: { tools: [{}, { cachePoint: { type: "default" } }] }
    })
    for (const vendor of ["chat", "responses", "google", "bedrock"] as const)
      expect(JSON.stringify(translated("messages", vendor, body))).not.toContain("cache")
  })

  it.each(["chat", "messages", "responses", "google", "bedrock"] as const)(
    "are written for %s where it says so",
    (vendor) => {
      for (const model of ["m", "gpt-6", "eu.anthropic.claude-opus-4-6", "amazon.nova-pro-v1:0"])
        expect(/cache/.test(JSON.stringify(translated("messages", vendor, body, { model })))).toBe(
          translations[vendor].marksCaches(model)
        )
    }
  )

  it("stay as they are", () => {
    expect(translated("messages", "messages", body)).toMatchObject(
      body.tools === undefined ? {} : { tools: body.tools }
    )
  })
})

describe("how much to think", () => {
  const effort = (vendor: Protocol, model: string, more: Json = {}) =>
    translated("chat", vendor, chat({ reasoning_effort: "medium", ...more }), { model })

  it("is an effort for newer models of Claude, a budget for older ones", () => {
    expect(effort("messages", "claude-opus-4-6")).toMatchObject({
      thinking: { type: "adaptive" },
      output_config: { effort: "medium" }
    })
    for (const model of ["claude-3-7-sonnet-latest", "claude-sonnet-4-5-20250929", "claude-opus-4-1", "glm-4.6"])
      expect(effort("messages", model)).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2000 } })
    expect(effort("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0")).toMatchObject({
      additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 2000 } }
    })
  })

  it("is left out where Claude would refuse it", () => {
    const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }]
    expect(effort("messages", "claude-sonnet-4-5", { tools, tool_choice: "required" })).not.toHaveProperty("thinking")
    expect(translated("chat", "messages", chat({ reasoning_effort: "low" }), { limit: 1000 })).not.toHaveProperty(
      "thinking"
    )
  })

  it("is a level for Gemini 3, a budget for older models", () => {
    expect(effort("google", "gemini-3-pro")).toMatchObject({
      generationConfig: { thinkingConfig: { thinkingLevel: "medium" } }
    })
    expect(effort("google", "gemini-2.5-flash")).toMatchObject({
      generationConfig: { thinkingConfig: { thinkingBudget: 2000 } }
    })
  })

  it("is the word that a budget comes nearest to", () => {
    const body = messages({ thinking: { type: "enabled", budget_tokens: 2000 } })
    expect(translated("messages", "chat", body)).toMatchObject({ reasoning_effort: "medium" })
    expect(translated("messages", "responses", body)).toMatchObject({
      reasoning: { effort: "medium", summary: "auto" },
      include: ["reasoning.encrypted_content"],
      store: false
    })
    expect(translated("messages", "chat", messages({ thinking: { type: "disabled" } }))).not.toHaveProperty(
      "reasoning_effort"
    )
  })
})

describe("thoughts of servers of chat", () => {
  it("go back to them as they came, through a client that signs", () => {
    const json = { choices: [{ message: { reasoning_content: "Hm", content: "Yes" }, finish_reason: "stop" }] }
    const answer = Either.getOrThrow(translations.chat.readAnswer(json))
    const written = translations.messages.writeAnswer(answer, answering)
    expect(written.content).toEqual([
      { type: "thinking", thinking: "Hm", signature: "unknown:" },
      { type: "text", text: "Yes" }
    ])
    expect(isForeign(JSON.stringify(written))).toBe(true)
    const body = messages({
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: written.content },
        { role: "user", content: "So" }
      ]
    })
    expect((translated("messages", "chat", body).messages as ReadonlyArray<Json>)[1]).toEqual({
      role: "assistant",
      content: "Yes",
      reasoning_content: "Hm"
    })
    expect(JSON.stringify(translated("messages", "messages", body))).not.toContain("Hm")
  })
})

describe("an error without words", () => {
  it.each(["chat", "messages", "responses", "google", "bedrock"] as const)("of %s has ours", (protocol) => {
    for (const error of ["", { message: "" }]) {
      const read = translations[protocol].readAnswer({ type: "error", status: "failed", error, message: "" })
      expect(Either.isLeft(read) && read.left.message).toMatch(/upstream/)
    }
  })
})

describe("usage", () => {
  it("of Google and of chat counts audio that came from a cache", () => {
    const usage = translations.google.usageOf({
      promptTokenCount: 100,
      candidatesTokenCount: 5,
      cachedContentTokenCount: 40,
      cacheTokensDetails: [
        { modality: "TEXT", tokenCount: 10 },
        { modality: "AUDIO", tokenCount: 30 }
      ],
      promptTokensDetails: [{ modality: "AUDIO", tokenCount: 50 }]
    })!
    expect(usage).toMatchObject({ cached_tokens: 40, cached_audio_tokens: 30, prompt_audio_tokens: 50 })
    for (const protocol of ["google", "chat"] as const) {
      const { usageOf, writeUsage } = translations[protocol]
      expect(usageOf(writeUsage(usage))).toMatchObject({ cached_tokens: 40, cached_audio_tokens: 30 })
    }
  })

  it("of Messages counts what a cache took, for how long", () => {
    expect(
      translations.messages.usageOf({
        input_tokens: 10,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 30,
        cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
        output_tokens: 5
      })
    ).toMatchObject({
      prompt_tokens: 140,
      cached_tokens: 100,
      cache_write_tokens: 20,
      cache_write_1h_tokens: 10,
      completion_tokens: 5
    })
  })

  it("of Messages counts all that a cache took, where the figures of how long say less", () => {
    const usage = (cache_creation: object) =>
      translations.messages.usageOf({
        input_tokens: 10,
        cache_creation_input_tokens: 30,
        cache_creation,
        output_tokens: 5
      })
    const none = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 }
    expect(usage(none)).toMatchObject({ prompt_tokens: 40, cache_write_tokens: 30, cache_write_1h_tokens: 0 })
    expect(usage({ ephemeral_1h_input_tokens: 10 })).toMatchObject({
      prompt_tokens: 40,
      cache_write_tokens: 20,
      cache_write_1h_tokens: 10
    })
  })

  it("of xAI has thoughts beside its completion", () => {
    const details = { completion_tokens_details: { reasoning_tokens: 30 } }
    const { usageOf } = translations.chat
    expect(usageOf({ prompt_tokens: 5, completion_tokens: 7, total_tokens: 42, ...details })).toMatchObject({
      completion_tokens: 37
    })
    expect(usageOf({ prompt_tokens: 5, completion_tokens: 37, total_tokens: 42, ...details })).toMatchObject({
      completion_tokens: 37
    })
  })

  it("of Gemini has thoughts beside its answer, and audio by itself", () => {
    expect(
      translations.google.usageOf({
        promptTokenCount: 9,
        candidatesTokenCount: 29,
        thoughtsTokenCount: 256,
        totalTokenCount: 294,
        promptTokensDetails: [
          { modality: "TEXT", tokenCount: 4 },
          { modality: "AUDIO", tokenCount: 5 }
        ]
      })
    ).toMatchObject({ prompt_tokens: 9, completion_tokens: 285, reasoning_tokens: 256, prompt_audio_tokens: 5 })
  })

  it("that is no count is not reported", () => {
    for (const translation of Object.values(translations)) {
      expect(translation.usageOf({})).toBeUndefined()
      expect(
        translation.usageOf({ prompt_tokens: -1, input_tokens: "5", promptTokenCount: 0.5, inputTokens: null })
      ).toBe(undefined)
    }
  })
})

describe("a refusal in words", () => {
  const json = { choices: [{ message: { content: null, refusal: "No" }, finish_reason: "stop" }] }
  const events = [
    {
      event: undefined,
      data: JSON.stringify({ choices: [{ index: 0, delta: { refusal: "No" }, finish_reason: null }] })
    },
    { event: undefined, data: JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) }
  ]

  it("keeps its words, whole and streamed, and is a refusal where there is a word for it", () => {
    const answer = Either.getOrThrow(translations.chat.readAnswer(json))
    expect(Either.getOrThrow(answerOf(stepsOf(translations.chat.reader(), events)))).toEqual(answer)
    expect(translations.messages.writeAnswer(answer, answering)).toMatchObject({
      content: [{ type: "text", text: "No" }],
      stop_reason: "refusal"
    })
    expect(translations.responses.writeAnswer(answer, answering)).toMatchObject({
      status: "completed",
      output: [{ content: [{ type: "refusal", refusal: "No" }] }]
    })
    expect(textOf(translations.messages.writer(answering), deltasOf(answer))).toContain('"stop_reason":"refusal"')
    expect(textOf(translations.responses.writer(answering), deltasOf(answer))).toContain("response.refusal.done")
    expect(textOf(translations.chat.writer(answering), deltasOf(answer))).toContain('"delta":{"refusal":"No"}')
  })
})

describe("vendors that go their own way", () => {
  const chunk = (delta: Json, finish_reason: string | null = null) => ({
    event: undefined,
    data: JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })
  })
  const call = (id: string, name: string) => ({
    tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: "{}" } }]
  })

  it("number all calls of chat 0", () => {
    const deltas = stepsOf(translations.chat.reader(), [
      chunk(call("a", "f")),
      chunk(call("b", "g")),
      chunk({}, "stop")
    ])
    expect(deltas.filter(({ type }) => type === "tool_start")).toMatchObject([
      { id: "a", index: 0 },
      { id: "b", index: 1 }
    ])
    expect(deltas.at(-2)).toMatchObject({ type: "stop", reason: "tool" })
  })

  it("send only whole items of Responses", () => {
    const item = { type: "message", content: [{ type: "output_text", text: "Hi" }] }
    const deltas = stepsOf(translations.responses.reader(), [
      { event: undefined, data: JSON.stringify({ type: "response.output_item.done", output_index: 0, item }) },
      { event: undefined, data: JSON.stringify({ type: "response.completed", response: { status: "completed" } }) }
    ])
    expect(deltas).toMatchObject([
      { type: "start" },
      { type: "text_start" },
      { type: "piece", text: "Hi" },
      { type: "part_end" },
      { type: "stop", reason: "end" },
      { type: "end" }
    ])
  })

  it("block a prompt of Gemini: an empty answer that was refused", () => {
    const answer = Either.getOrThrow(translations.google.readAnswer({ promptFeedback: { blockReason: "SAFETY" } }))
    expect(answer).toMatchObject({ parts: [], stop: "refusal" })
    expect(translations.messages.writeAnswer(answer, answering)).toMatchObject({ content: [], stop_reason: "refusal" })
  })

  it("sign a call of Gemini, not the thought before it", () => {
    const parts = [
      { text: "Hm", thought: true },
      { functionCall: { name: "f", args: {} }, thoughtSignature: "c2ln" }
    ]
    const answer = Either.getOrThrow(
      translations.google.readAnswer({ candidates: [{ content: { parts }, finishReason: "STOP" }] })
    )
    expect(answer.parts).toMatchObject([
      { type: "thinking", text: "Hm", signature: undefined },
      { type: "thinking", text: "", signature: "c2ln" },
      { type: "tool_call", name: "f" }
    ])
  })

  it("stop for a reason that nobody knows", () => {
    const json = { content: [{ type: "text", text: "Hi" }], stop_reason: "tired" }
    expect(Either.getOrThrow(translations.messages.readAnswer(json))).toMatchObject({ stop: "end" })
  })

  it("cannot write a call", () => {
    const json = { candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL", finishMessage: "no such tool" }] }
    expect(Either.flip(translations.google.readAnswer(json)).pipe(Either.getOrThrow)).toEqual({
      kind: "vendor",
      message: "no such tool"
    })
  })
})
