/** Long answers: what is read of them without parsing them on the thread that serves, and what is charged where there is no room for one. */
import { expect, it, layer } from "@effect/vitest"
import { Effect, Either, Layer } from "effect"
import { describe, vi } from "vitest"
import { Chat } from "../../../src/calls/chat/Chat.ts"
import { chat as chatProtocol } from "../../../src/calls/dialects/chat/Completions.ts"
import * as LongAnswers from "../../../src/calls/engine/LongAnswers.ts"
import { Models } from "../../../src/calls/prompts/Model.ts"
import type { Model } from "../../../src/calls/prompts/Model.ts"
import type { Protocol, UpstreamProtocol } from "../../../src/calls/prompts/Protocol.ts"
import * as Translated from "../../../src/calls/engine/Translated.ts"
import { bedrock, google } from "../../../src/calls/dialects/Vendors.ts"
import { JsonOutline } from "../../../src/kernel/JsonOutline.ts"
import type { Room } from "../../../src/kernel/Room.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { messages } from "../../../src/calls/dialects/messages/Protocol.ts"
import { responses } from "../../../src/calls/dialects/responses/Protocol.ts"
import { booksOf, fault, over, person, received } from "../../support/Called.ts"
import { smallModel } from "../../support/SmallModel.ts"

const words = "a long answer ".repeat(100_000)
const answers: ReadonlyArray<readonly [UpstreamProtocol, object]> = [
  [
    chatProtocol,
    {
      choices: [{ index: 0, message: { role: "assistant", content: words }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 2 }
    }
  ],
  [
    messages,
    {
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: words }],
      stop_reason: "end_turn",
      usage: { input_tokens: 3, output_tokens: 2 }
    }
  ],
  [
    responses,
    {
      status: "completed",
      output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: words }] }],
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
    }
  ],
  [
    google,
    {
      candidates: [{ content: { role: "model", parts: [{ text: words }] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 }
    }
  ],
  [
    bedrock,
    {
      output: { message: { role: "assistant", content: [{ text: words }] } },
      stopReason: "end_turn",
      usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
    }
  ]
]

const outlined = (speaks: UpstreamProtocol, answer: object) => {
  const body = Buffer.from(JSON.stringify(answer))
  const outline = new JsonOutline(speaks.long)
  for (let at = 0; at < body.length; at += 65_536) outline.take(body.subarray(at, at + 65_536))
  return { body, outline }
}

const options = { id: "1", model: "m", created: 1, request: {} }

/** Reads an answer while this thread parses nothing that is long. */
const read = (protocol: Protocol, speaks: UpstreamProtocol, answer: object, has_room = true) => {
  const pair = protocol === speaks ? undefined : Translated.pairOf(protocol.name, speaks.name)
  const { body, outline } = outlined(speaks, answer)
  const parse = vi.spyOn(JSON, "parse")
  return LongAnswers.read({
    protocol,
    pair,
    needsIds: false,
    account: "a",
    body: has_room ? body : undefined,
    outline,
    options: () => Effect.succeed(options)
  }).pipe(
    Effect.map((found) => {
      for (const [text] of parse.mock.calls) expect(text.length).toBeLessThan(10_000)
      return Either.getOrThrow(found)
    }),
    Effect.ensuring(Effect.sync(() => parse.mockRestore()))
  )
}

const usage = { prompt_tokens: 3, completion_tokens: 2 }

describe("a long answer", () => {
  for (const protocol of [chatProtocol, messages, responses]) {
    for (const [speaks, answer] of answers) {
      it.effect(`of ${speaks.name} for a client of ${protocol.name} is parsed on no thread that serves`, () =>
        Effect.gen(function* () {
          const found = yield* read(protocol, speaks, answer)
          expect(found.usage).toMatchObject(usage)
          const pair = Translated.pairOf(protocol.name, speaks.name)!
          const whole = Either.getOrThrow(Translated.answerOf(pair, answer, options))
          expect(found.bytes!.toString()).toBe(JSON.stringify(protocol === speaks ? answer : whole.shown))
        })
      )
    }
  }

  for (const [speaks, answer] of answers) {
    it.effect(`of ${speaks.name} for which there is no room says its usage all the same`, () =>
      Effect.gen(function* () {
        const found = yield* read(chatProtocol, speaks, answer, false)
        expect(found).toMatchObject({ bytes: undefined, usage })
      })
    )
  }

  it.effect("that reports no usage is counted as a short one is", () =>
    Effect.gen(function* () {
      for (const [speaks, answer] of answers.slice(0, 3)) {
        const silent = { ...answer, usage: undefined }
        const protocol = speaks as Protocol
        const found = yield* read(protocol, protocol, silent)
        expect(found.tokens_counted).toBe(protocol.countIn(silent))
        expect(found.bytes!.toString()).toBe(JSON.stringify(silent))
      }
    })
  )

  it("is none where it is no JSON object, or has an error", () => {
    const wrong = (answer: object) => {
      const { body, outline } = outlined(chatProtocol, answer)
      const asked = {
        protocol: chatProtocol,
        pair: undefined,
        body,
        outline,
        needsIds: false,
        account: "a",
        options: () => Effect.succeed(options)
      }
      return Effect.runSync(LongAnswers.read(asked))
    }
    expect(Either.isLeft(wrong([words]))).toBe(true)
    expect(Either.isLeft(wrong({ choices: [], error: { message: "no" }, padding: "" }))).toBe(true)
  })
})

// ---- a call ---------------------------------------------------------------------------------------------------------------------

const model: Model = {
  ...smallModel,
  routes: [
    { upstream: "vendor", model: "first", limit_field: "max_tokens" },
    { upstream: "vendor", model: "second", limit_field: "max_tokens" }
  ]
}
const prompt = { model: "small", messages: [{ role: "user", content: "hello there" }], max_tokens: 50 }

/** A room for this many bytes. An answer that must wait is refused soon. */
const roomFor = (bytes: number): Room & { held: number } => ({
  held: 0,
  reserve(count) {
    return this.take(count)
  },
  take(count) {
    if (this.held + count > bytes) return false
    this.held += count
    return true
  },
  claim(count, then) {
    if (count <= bytes) {
      this.held = count
      return undefined
    }
    const timer = setTimeout(() => then(false), 10)
    return () => clearTimeout(timer)
  },
  become(count) {
    this.held = count
  }
})

const room = Chat.layer.pipe(Layer.provide(Layer.succeed(Models, { models: [model], auto: "small" })))

layer(over(room, "chat-a/v1"), { excludeTestServices: true })("a call in a room", (it) => {
  it.effect("asks no upstream where it has none", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const before = (yield* received("chat")).length
      const refusal = yield* Effect.flip((yield* Chat).complete({ caller, prompt, room: roomFor(1_000) }))
      expect(refusal).toMatchObject({ _tag: "Busy", retry_after: 5 })
      expect((yield* received("chat")).length).toBe(before)
      expect(yield* booksOf(caller)).toMatchObject({ balance: usd, reserved: 0n, calls: [], findings: [] })
    })
  )

  it.effect("is charged what its answer reports where that finds none, and asks no other upstream", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const before = (yield* received("chat")).length
      for (const size of [100_000, 3_000_000]) {
        const space = roomFor(50_000)
        const message = { role: "assistant", content: "a".repeat(size) }
        const choices = [{ index: 0, message, finish_reason: "stop" }]
        yield* fault("chat", { status: 200, body: { choices, usage: { prompt_tokens: 2, completion_tokens: 5 } } })
        const refusal = yield* Effect.flip((yield* Chat).complete({ caller, prompt, room: space }))
        expect(refusal).toMatchObject({ _tag: "Busy" })
        expect(space.held).toBe(0)
      }
      expect((yield* received("chat")).length).toBe(before + 2)
      const call = { cost: 52n, success: true, error_type: "busy", usage_source: "provider" }
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - 104n,
        reserved: 0n,
        calls: [call, call],
        findings: []
      })
    })
  )

  it.effect("has its long answer byte for byte where there is room for it", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const space = roomFor(100_000_000)
      const answer = { ...answers[0]![1], other: 1 }
      yield* fault("chat", { status: 200, body: answer })
      const { bytes, completion, receipt } = yield* (yield* Chat).complete({ caller, prompt, room: space })
      expect(bytes.toString()).toBe(JSON.stringify(answer))
      expect(completion).toEqual(answer)
      expect([receipt.charged, space.held]).toEqual([23n, bytes.length])
    })
  )
})
