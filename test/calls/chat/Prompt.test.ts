/** What is asked by hand of every body says what the schema says, which is asked only of those that do not fit. */
import { Either, FastCheck as fc, Schema } from "effect"
import { describe, expect, it } from "vitest"
import type { DetailPrices, Model } from "../../../src/calls/prompts/Model.ts"
import {
  affordableCompletionLimit,
  minCompletionTokens,
  completionLimitWithin,
  boundOf,
  ChatRequest,
  maxTokensOf,
  promptTokensEstimate,
  readChat,
  readCompletion
} from "../../../src/calls/prompts/Prompt.ts"
import { readMessages } from "../../../src/calls/dialects/messages/Prompt.ts"
import { readResponses } from "../../../src/calls/dialects/responses/Prompt.ts"
import { costOf, tokensIn, tokensOf } from "../../../src/calls/prompts/Tokens.ts"
import { usageOf } from "../../../src/protocols/chat/Usage.ts"
import { noUsage } from "../../../src/protocols/conversation/Usage.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { flac, mp3, opus, tagged, wave } from "../../support/Sounds.ts"
import { completionDetails, detailNames, promptDetails } from "../../../src/kernel/TokenDetails.ts"

const rarely = fc.oneof(fc.constantFrom(null, "", "text", "assistant", 0, true), fc.constant([]), fc.constant({}))

const message = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ role: "user", content: "hello" }) },
  {
    weight: 5,
    arbitrary: fc.record({ role: fc.constantFrom("user", "assistant"), content: rarely }, { requiredKeys: [] })
  },
  { weight: 1, arbitrary: fc.record({ role: rarely, content: rarely, name: rarely }, { requiredKeys: [] }) },
  { weight: 1, arbitrary: rarely }
)

describe("a chat request", () => {
  it("is read exactly when the schema accepts it", () => {
    const accepts = Schema.is(ChatRequest)
    let accepted = 0
    fc.assert(
      fc.property(fc.oneof(fc.array(message, { maxLength: 3 }), rarely), (messages) => {
        const body: unknown = JSON.parse(JSON.stringify({ model: "m", messages }))
        const is = accepts(body)
        if (is) accepted++
        expect(Either.isRight(readChat(body))).toBe(is)
      }),
      { numRuns: 2_000 }
    )
    expect(accepted).toBeGreaterThan(100)
  })
})

const price = fc.oneof(fc.constant(0n), fc.bigInt(1n, 10n ** 15n)) as fc.Arbitrary<UnitPrice>
const detail_prices = fc.option(fc.dictionary(fc.constantFrom(...detailNames), price) as fc.Arbitrary<DetailPrices>, {
  nil: undefined
})
const long_context = fc.option(
  fc
    .array(
      fc.record({
        above_prompt_tokens: fc.nat(300),
        prompt_price: fc.option(price, { nil: undefined }),
        completion_price: fc.option(price, { nil: undefined }),
        detail_prices
      }),
      { minLength: 1, maxLength: 3 }
    )
    .map((tiers) => tiers.toSorted((a, b) => a.above_prompt_tokens - b.above_prompt_tokens)),
  { nil: undefined }
)
const model: fc.Arbitrary<Model> = fc
  .record({
    detail_prices,
    long_context,
    context_length: fc.integer({ min: 1, max: 2_000_000 }),
    output_tokens_max: fc.integer({ min: 1, max: 200_000 }),
    attachment_tokens_max: fc.integer({ min: 1, max: 5_000 }),
    added_tokens_max: fc.nat(500),
    tool_tokens_max: fc.nat(500),
    prompt_price: price,
    completion_price: price,
    request_price: price,
    limit_field: fc.constantFrom("max_tokens" as const, "max_completion_tokens" as const, "none" as const)
  })
  .map(({ limit_field, ...facts }) => ({
    id: "m",
    name: "m",
    description: "",
    owned_by: "system",
    created: 1,
    input_modalities: ["text"],
    output_modalities: ["text"],
    extras: [],
    routes: [{ upstream: "main", model: "m", limit_field }],
    ...facts
  }))
const count = fc.integer({ min: 1, max: 128 })
const limits = fc.record(
  {
    max_tokens: fc.integer({ min: 1, max: 10 ** 9 }),
    max_completion_tokens: fc.integer({ min: 1, max: 10 ** 9 }),
    tools: fc.constantFrom([], [{ type: "function", function: { name: "f" } }]),
    n: count,
    best_of: count
  },
  { requiredKeys: [] }
)
const part = fc.constantFrom(
  { type: "text", text: "words and words" },
  { type: "text", text: "words", cache_control: { type: "ephemeral", ttl: "1h" } },
  { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
  { type: "file", file: { file_id: "file_1" } },
  { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }
)
const figure = fc.oneof(
  fc.nat(300),
  fc.constantFrom<unknown>(0, -1, 1e9, 1e300, Number.POSITIVE_INFINITY, Number.NaN, 0.5, "7", null, undefined, {}, true)
)
const usage = fc.oneof(
  fc.record({ prompt_tokens: figure, completion_tokens: figure }, { requiredKeys: [] }),
  fc.record(
    {
      prompt_tokens: figure,
      completion_tokens: figure,
      total_tokens: figure,
      prompt_tokens_details: fc.record({
        cached_tokens: figure,
        cached_tokens_details: fc.record({ audio_tokens: figure }),
        audio_tokens: figure,
        image_tokens: figure
      }),
      completion_tokens_details: fc.record({ reasoning_tokens: figure, audio_tokens: figure, image_tokens: figure }),
      cache_creation_input_tokens: figure,
      cache_creation: fc.record({ ephemeral_1h_input_tokens: figure })
    },
    { requiredKeys: [] }
  ),
  fc.constantFrom<unknown>(undefined, null, [], "", 7)
)

describe("what is attached", () => {
  const png = `data:image/png;base64,${"A".repeat(500)}`
  const film = `data:video/mp4;base64,${"A".repeat(500)}`
  const base64 = (bytes: Buffer | string) => Buffer.from(bytes).toString("base64")
  const words = base64("words ".repeat(80))
  const pdf = `data:application/pdf;base64,${base64(`%PDF-1.7\n${"\u00ff".repeat(400)}`)}`
  const data = base64(mp3())
  const ofChat = (part: object) => readChat({ model: "m", messages: [{ role: "user", content: [part] }] })
  const ofMessages = (part: object) =>
    readMessages({ model: "m", max_tokens: 5, messages: [{ role: "user", content: [part] }] })
  const ofResponses = (part: object) => readResponses({ model: "m", input: [{ role: "user", content: [part] }] })
  const block = (type: string, source: object) => ofMessages({ type, source })

  /** The bytes that bound the tokens beside an image's own, or "context". */
  const boundedBy = (read: ReturnType<typeof ofChat>): string => {
    const { attached_elsewhere, attachments, bytes } = Either.getOrThrow(read)
    expect(attachments).toBe(1)
    return attached_elsewhere ? "context" : bytes > 500 ? "its bytes" : "as an image"
  }

  it.each([
    ["an image", ofChat({ type: "image_url", image_url: { url: png } }), "as an image"],
    ["an image at an address", ofChat({ type: "image_url", image_url: { url: "https://a.example/b" } }), "as an image"],
    ["a document as an image", ofChat({ type: "image_url", image_url: { url: pdf } }), "context"],
    ["a film as an image", ofChat({ type: "image_url", image_url: { url: film } }), "context"],
    ["a film that says it is an image too", ofChat({ type: "video_url", video_url: {}, image_url: png }), "context"],
    ["a file", ofChat({ type: "file", file: { file_data: pdf } }), "context"],
    ["a text", ofChat({ type: "file", file: { file_data: `data:text/plain;base64,${words}` } }), "its bytes"],
    [
      "a text as an image",
      ofChat({ type: "image_url", image_url: { url: `data:text/plain;base64,${words}` } }),
      "its bytes"
    ],
    [
      "a document that says it is a text",
      ofChat({ type: "file", file: { file_data: pdf.replace("application/pdf", "text/plain") } }),
      "context"
    ],
    [
      "a document without a binary byte",
      ofChat({
        type: "file",
        file: { file_data: `data:text/plain;base64,${base64(`${"\n".repeat(1_500)}%PDF-1.7`)}` }
      }),
      "context"
    ],
    [
      "a file that is a text but for its end",
      ofChat({ type: "file", file: { file_data: `${base64("w".repeat(2_100))}AAAA` } }),
      "context"
    ],
    ["a film as a file", ofChat({ type: "file", file: { file_data: film } }), "context"],
    ["a file at an address", ofChat({ type: "file", file: { file_data: "https://a.example/b.pdf" } }), "context"],
    ["a file by its id and as data", ofChat({ type: "file", file: { file_data: "AA", file_id: "file-1" } }), "context"],
    ["a file by its id with audio", ofChat({ type: "file", file: { file_id: "f" }, input_audio: { data } }), "context"],
    ["audio in MP3", ofChat({ type: "input_audio", input_audio: { data, format: "mp3" } }), "its bytes"],
    [
      "audio in MP3 behind a tag",
      ofChat({ type: "input_audio", input_audio: { data: base64(tagged(mp3())) } }),
      "its bytes"
    ],
    ["audio in WAV", ofChat({ type: "input_audio", input_audio: { data: base64(wave({})) } }), "its bytes"],
    [
      "a document that begins as audio in MP3",
      ofChat({
        type: "file",
        file: { file_data: base64(Buffer.concat([mp3().subarray(0, 4), Buffer.from("%PDF-1.7"), mp3()])) }
      }),
      "context"
    ],
    [
      "audio of ten samples a second",
      ofChat({ type: "input_audio", input_audio: { data: base64(wave({ rate: 10 })) } }),
      "context"
    ],
    [
      "audio in FLAC",
      ofChat({ type: "input_audio", input_audio: { data: base64(flac({ frames: 50 })), format: "wav" } }),
      "context"
    ],
    [
      "audio in FLAC behind a tag",
      ofChat({ type: "input_audio", input_audio: { data: base64(tagged(flac({ frames: 50 }))) } }),
      "context"
    ],
    [
      "audio in Ogg",
      ofResponses({ type: "input_audio", input_audio: { data: base64(opus([Buffer.alloc(400)])) } }),
      "context"
    ],
    ["audio that is nothing known", ofChat({ type: "input_audio", input_audio: { data: "A".repeat(500) } }), "context"],
    ["an image", block("image", { type: "base64", media_type: "image/png", data }), "as an image"],
    ["an image at an address", block("image", { type: "url", url: "https://a.example/b" }), "as an image"],
    [
      "a document as an image",
      block("image", { type: "base64", media_type: "application/pdf", data: pdf.split(",")[1] }),
      "context"
    ],
    ["a film as an image", block("image", { type: "base64", media_type: "video/mp4", data }), "context"],
    ["a film in the address of an image", block("image", { type: "url", url: film }), "context"],
    [
      "a document",
      block("document", { type: "base64", media_type: "application/pdf", data: pdf.split(",")[1] }),
      "context"
    ],
    ["a film as a document", block("document", { type: "base64", media_type: "video/mp4", data }), "context"],
    [
      "a document at an address, and data",
      block("document", { type: "url", url: "https://a.example/b", data }),
      "context"
    ],
    ["an image", ofResponses({ type: "input_image", image_url: png }), "as an image"],
    ["a film as an image", ofResponses({ type: "input_image", image_url: film }), "context"],
    ["a file", ofResponses({ type: "input_file", file_data: pdf }), "context"],
    ["a file at an address, and data", ofResponses({ type: "input_file", file_url: "x", file_data: pdf }), "context"]
  ])("%s is bounded by what its vendor may read of it", (_, read, bound) => {
    expect(boundedBy(read)).toBe(bound)
  })
})

describe("a tool of the vendor", () => {
  const names = (tool: object) =>
    Either.getOrThrow(readResponses({ model: "m", input: "hello", tools: [tool] })).names_kept

  it.each([
    [{ type: "file_search", vector_store_ids: ["vs_1"] }],
    [{ type: "code_interpreter", container: "cntr_1" }],
    [{ type: "code_interpreter", container: { type: "auto", file_ids: ["file-1"] } }],
    [{ type: "shell", environment: { type: "container_reference", container_id: "cntr_1" } }]
  ])("names what the vendor keeps for all callers: %j", (tool) => {
    expect(names(tool)).toBe("tools")
  })

  it.each([
    [{ type: "code_interpreter", container: { type: "auto", file_ids: [] } }],
    [{ type: "shell", environment: { type: "container_auto" } }],
    [{ type: "function", name: "f", parameters: { properties: { container_id: { type: "string" } } } }]
  ])("names nothing of it: %j", (tool) => {
    expect(names(tool)).toBeUndefined()
  })
})

describe("a charge", () => {
  it("is more than was set aside only where the provider counts more of the prompt, up to its context", () => {
    let beyond = 0
    fc.assert(
      fc.property(
        model,
        limits,
        fc.oneof(
          fc.record({ content: fc.array(part) }),
          fc.record({ prompt: fc.array(fc.string(), { maxLength: 5 }) })
        ),
        fc.double({ min: 0, max: 1, noNaN: true }),
        usage,
        fc.nat(10_000),
        fc.boolean(),
        (model, limits, asked, affords, reported, completion_tokens, isLimited) => {
          const body: unknown = {
            model: "m",
            ...limits,
            ...("prompt" in asked ? asked : { messages: [{ role: "user", content: asked.content }] })
          }
          const prompt = Either.getOrThrow("prompt" in asked ? readCompletion(body) : readChat(body))
          const { enough, least, most, tokens: inTokens } = boundOf(model, prompt)
          expect(least <= enough && enough <= most && inTokens.least <= inTokens.most).toBe(true)
          const reserved = least + BigInt(Math.floor(Number(most - least) * affords))
          const left = inTokens.least + Math.floor((inTokens.most - inTokens.least) * affords)
          const tokensLeft = isLimited ? left : undefined
          const reservation = reserved < most ? reserved : most
          const limit = completionLimitWithin(model, prompt, { reserved: reservation, tokens: tokensLeft })
          const takes = model.routes[0]!.limit_field !== "none"
          // OpenAI's responses take no fewer.
          expect(limit).toBeLessThanOrEqual(model.output_tokens_max)
          if (prompt.answer_tokens_max === undefined)
            expect(limit).toBeGreaterThanOrEqual(Math.min(minCompletionTokens, model.output_tokens_max))
          const bound = maxTokensOf(model, prompt, takes ? limit : model.output_tokens_max)
          const seen = { prompt_tokens: promptTokensEstimate(model, prompt), completion_tokens }
          const tokens = tokensOf(usageOf(reported) ?? noUsage, () => seen, bound)
          expect(costOf(model, bound) <= reservation).toBe(true)
          if (tokensLeft !== undefined)
            expect(bound.prompt_tokens + bound.completion_tokens).toBeLessThanOrEqual(tokensLeft)
          expect(tokens.completion_tokens).toBeLessThanOrEqual(bound.completion_tokens)
          expect(tokens.prompt_tokens).toBeLessThanOrEqual(model.context_length * prompt.prompts)
          if (tokens.prompt_tokens > bound.prompt_tokens) beyond++
          else expect(costOf(model, tokens) <= reservation).toBe(true)
          const { token_details = {} } = tokens
          for (const [names, total] of [
            [promptDetails, tokens.prompt_tokens],
            [completionDetails, tokens.completion_tokens]
          ] as const)
            expect(names.reduce((n, name) => n + (token_details[name] ?? 0), 0)).toBeLessThanOrEqual(total)
        }
      ),
      { numRuns: 5_000 }
    )
    expect(beyond).toBeGreaterThan(0)
  })

  it("of a fallback is never more than was set aside for the model that was asked", () => {
    const seen = { taken: 0, passed_over: 0 }
    fc.assert(
      fc.property(
        model,
        model,
        limits,
        fc.array(part),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.boolean(),
        (...drawn) => {
          const [asked, fallback, limits, content, affords, isLimited] = drawn
          const prompt = Either.getOrThrow(readChat({ model: "m", ...limits, messages: [{ role: "user", content }] }))
          const { least, most, tokens: bound } = boundOf(asked, prompt)
          const share = least + BigInt(Math.floor(Number(most - least) * affords))
          const reserved = share < most ? share : most
          const tokens = isLimited ? bound.least + Math.floor((bound.most - bound.least) * affords) : undefined
          const limit = affordableCompletionLimit(fallback, prompt, { reserved, tokens })
          if (limit === undefined) return void seen.passed_over++
          seen.taken++
          const takes = fallback.routes[0]!.limit_field !== "none"
          const caused = maxTokensOf(fallback, prompt, takes ? limit : fallback.output_tokens_max)
          expect(costOf(fallback, caused) <= reserved).toBe(true)
          if (tokens !== undefined) expect(caused.prompt_tokens + caused.completion_tokens).toBeLessThanOrEqual(tokens)
        }
      ),
      { numRuns: 5_000 }
    )
    expect(Math.min(seen.taken, seen.passed_over)).toBeGreaterThan(500)
  })
})

describe("the bound of a prompt", () => {
  const [sample] = fc.sample(model, 1)
  const asking: Model = {
    ...sample!,
    context_length: 100_000,
    output_tokens_max: 200,
    attachment_tokens_max: 1_000,
    added_tokens_max: 30,
    tool_tokens_max: 700
  }
  const tool = { name: "look", description: "looks", input_schema: {}, parameters: {}, type: "function" }
  const readers = {
    chat: (more: object) => readChat({ model: "m", messages: [{ role: "user", content: "hello" }], ...more }),
    messages: (more: object) =>
      readMessages({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "hello" }], ...more }),
    responses: (more: object) => readResponses({ model: "m", input: "hello", ...more })
  }
  const added = (read: (more: object) => ReturnType<typeof readChat>, more: object) => {
    const prompt = Either.getOrThrow(read(more))
    return maxTokensOf(asking, prompt, 10).prompt_tokens - prompt.bytes
  }

  it.each(Object.entries(readers))(
    "has room for the vendor's template, and for its words about tools (%s)",
    (_, read) => {
      expect(added(read, {})).toBe(30)
      expect(added(read, { tools: [] })).toBe(30)
      expect(added(read, { tools: null })).toBe(30)
      expect(added(read, { tools: [tool] })).toBe(730)
      expect(added(read, { tools: [tool, tool] })).toBe(730)
    }
  )

  it("has room for tools under their older name", () => {
    expect(added(readers.chat, { functions: [{ name: "look" }] })).toBe(730)
  })

  it("is no more than the context, up to which a vendor is believed", () => {
    const most = maxTokensOf({ ...asking, context_length: 100 }, Either.getOrThrow(readers.chat({ tools: [tool] })), 10)
    expect([most.prompt_tokens, most.context_tokens]).toEqual([100, 100])
    const three = Either.getOrThrow(readCompletion({ model: "m", prompt: ["a", "b", "c"] }))
    expect(maxTokensOf(asking, three, 10).context_tokens).toBe(300_000)
  })
})

describe("a limit of the answer", () => {
  it("is the model's own where a client asks for more", () => {
    fc.assert(
      fc.property(model, fc.integer({ min: 1, max: 10 ** 9 }), (model, max_tokens) => {
        const chat = (more: object) =>
          Either.getOrThrow(readChat({ model: "m", messages: [{ role: "user", content: "hello" }], ...more }))
        const own = Math.min(max_tokens, model.output_tokens_max)
        const [asked, meant] = [chat({ max_tokens }), chat({ max_tokens: own })]
        expect(completionLimitWithin(model, asked, { reserved: 0n, tokens: undefined })).toBe(own)
        const same = { ...asked, bytes: meant.bytes }
        expect(boundOf(model, same)).toEqual(boundOf(model, meant))
      })
    )
  })
})

describe("tokens that are billed apart", () => {
  const most = {
    prompt_tokens: 100,
    context_tokens: 100,
    completion_tokens: 100,
    kinds: { attachments: true, hour: true }
  }
  const told = (usage: object, more = most) =>
    tokensOf(usageOf({ prompt_tokens: 50, completion_tokens: 20, ...usage })!, () => most, more)

  it("are nothing where none were reported", () => {
    expect(told({ prompt_tokens_details: { cached_tokens: 0 } })).toEqual({
      prompt_tokens: 50,
      completion_tokens: 20,
      usage_source: "provider",
      token_details: undefined
    })
  })

  it("are once what they are: audio from a cache is neither other audio nor another part of the cache", () => {
    const details = { cached_tokens: 20, cached_tokens_details: { audio_tokens: 8 }, audio_tokens: 15 }
    expect(told({ prompt_tokens_details: details })).toMatchObject({
      usage_source: "provider",
      token_details: { cached_audio_tokens: 8, cached_tokens: 12, prompt_audio_tokens: 7 }
    })
  })

  it("are cached for an hour only where that was asked for; else they are cached for minutes, as an estimate", () => {
    const usage = {
      cache_creation_input_tokens: 30,
      cache_creation: { ephemeral_1h_input_tokens: 20 }
    }
    expect(told(usage).token_details).toEqual({ cache_write_tokens: 10, cache_write_1h_tokens: 20 })
    expect(told(usage, { ...most, kinds: { attachments: true, hour: false } })).toMatchObject({
      usage_source: "estimated",
      token_details: { cache_write_tokens: 30 }
    })
  })

  it("share their total in their order: audio from a cache is what came from a cache", () => {
    expect(told({ prompt_tokens_details: { cached_tokens: 40, audio_tokens: 45 } })).toMatchObject({
      usage_source: "provider",
      token_details: { cached_tokens: 40, prompt_audio_tokens: 10 }
    })
  })

  it("are believed up to their total, and are estimates beyond it", () => {
    expect(told({ prompt_tokens_details: { cached_tokens: 51 } })).toMatchObject({
      prompt_tokens: 50,
      usage_source: "estimated",
      token_details: { cached_tokens: 50 }
    })
    expect(told({ completion_tokens_details: { reasoning_tokens: 1e9 } })).toMatchObject({
      usage_source: "estimated",
      token_details: { reasoning_tokens: 20 }
    })
  })

  it("are no audio and no images where nothing is attached", () => {
    const usage = { prompt_tokens_details: { audio_tokens: 5, image_tokens: 5, cached_tokens: 5 } }
    expect(told(usage, { ...most, kinds: { attachments: false, hour: true } })).toMatchObject({
      usage_source: "estimated",
      token_details: { cached_tokens: 5 }
    })
    expect(told(usage).token_details).toEqual({ cached_tokens: 5, prompt_audio_tokens: 5, prompt_image_tokens: 5 })
  })
})

describe("what is counted of an answer", () => {
  const tokens = (content: string) => tokensIn(JSON.stringify([{ message: { role: "assistant", content } }]))

  it("is what its strings hold, to their last quote", () => {
    expect(tokens('a "quoted" word')).toBe(Math.round('a \\"quoted\\" word'.length / 4))
    expect(tokens("ends with a backslash\\")).toBe(Math.round("ends with a backslash\\\\".length / 4))
    expect(tokens('"content":"')).toBe(Math.round('\\"content\\":\\"'.length / 4))
    expect(tokens("")).toBe(0)
  })

  it("may be as long as a whole answer", () => {
    const long = 48 * 1024 * 1024
    expect(tokens("a".repeat(long))).toBe(long / 4)
    expect(tokens('"'.repeat(long / 4))).toBe(long / 2 / 4)
  })
})
