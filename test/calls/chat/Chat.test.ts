/** Chat as a program asks for it, without HTTP: completions and streams with their receipts, refusals by their tags, interruption. */
import { expect, layer } from "@effect/vitest"
import { Chunk, Effect, Exit, Fiber, Layer, Stream } from "effect"
import { text } from "node:stream/consumers"
import { Chat } from "../../../src/calls/chat/Chat.ts"
import { Models } from "../../../src/calls/prompts/Model.ts"
import type { Model } from "../../../src/calls/prompts/Model.ts"
import { UnknownChatModel } from "../../../src/calls/prompts/Problems.ts"
import type { ChatPrompt } from "../../../src/calls/prompts/Prompt.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { booksOf, fault, holds, interruptedAtWork, over, person, received, settled } from "../../support/Called.ts"
import { smallModel as model } from "../../support/SmallModel.ts"

const twice: Model = {
  ...model,
  id: "twice",
  routes: [
    { upstream: "vendor", model: "first", limit_field: "max_tokens" },
    { upstream: "vendor", model: "second", limit_field: "max_tokens" }
  ]
}

const prompt: ChatPrompt = { model: "small", messages: [{ role: "user", content: "hello there" }], max_tokens: 50 }
/** Two words, and two again. */
const cost = 2n + 2n * 10n

const room = Chat.layer.pipe(Layer.provide(Layer.succeed(Models, { models: [model, twice], auto: "small" })))

layer(over(room, "chat-a/v1"), { excludeTestServices: true })("chat", (it) => {
  it.effect("is a parsed completion, its bytes and a receipt", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      const { bytes, completion, receipt } = yield* chat.complete({
        caller,
        prompt: { ...prompt, seed: 7, extra: "x" }
      })
      expect(completion.choices[0]?.message?.content).toBe("hello there")
      expect(JSON.parse(bytes.toString())).toEqual(completion)
      const payer = { billing_account_id: billingAccountOf(caller.tenant_id), kind: "own" }
      expect(receipt).toMatchObject({ charged: cost, balance: usd - cost, payer })
      // Fields that are not known here reach the model.
      expect((yield* received("chat"))[0]?.body).toMatchObject({ model: "vendor-small", seed: 7, extra: "x" })
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - cost,
        reserved: 0n,
        calls: [{ id: receipt.usage_id, cost, success: true, usage_source: "provider" }],
        findings: []
      })
    })
  )

  it.effect("is streamed as bytes, or as chunks, and the receipt comes with the end", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      const bytes = yield* chat.stream({ caller, prompt })
      expect(yield* Effect.promise(() => text(bytes.bytes))).toMatch(/^data: \{[\s\S]*\n\ndata: \[DONE\]\n\n$/)
      expect(yield* bytes.receipt).toMatchObject({ charged: cost, balance: usd - cost })

      const chunks = yield* chat.stream({ caller, prompt: { ...prompt, stream_options: { include_usage: true } } })
      const events = Chunk.toReadonlyArray(yield* Stream.runCollect(chunks.events))
      expect(events.map(({ choices }) => choices[0]?.delta?.content ?? "").join("")).toBe("hello there")
      expect(events.at(-1)?.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 2 })
      expect(yield* chunks.receipt).toMatchObject({ charged: cost, balance: usd - 2n * cost })
    })
  )

  it.effect("has the form that the method says, whatever the prompt does", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      yield* chat.complete({ caller, prompt: { ...prompt, stream: true, stream_options: { include_usage: true } } })
      const [sent] = yield* received("chat")
      expect([sent?.body.stream, sent?.body.stream_options]).toEqual([undefined, undefined])
      const { bytes } = yield* chat.stream({ caller, prompt: { ...prompt, stream: false } })
      expect(yield* Effect.promise(() => text(bytes))).toContain("[DONE]")
    })
  )

  it.effect("completes text, whole and streamed", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      const asked = { caller, prompt: { model: "auto", prompt: "hello there" } }
      const { completion, receipt } = yield* chat.completeText(asked)
      expect([completion.choices[0]?.text?.trim(), receipt.charged]).toEqual(["hello there", cost])
      const { events } = yield* chat.streamText(asked)
      const pieces = Chunk.toReadonlyArray(yield* Stream.runCollect(events)).map(
        ({ choices }) => choices[0]?.text ?? ""
      )
      expect(pieces.join("").trim()).toBe("hello there")
    })
  )

  it.effect("that cannot be paid is refused with amounts, and reaches no upstream", () =>
    Effect.gen(function* () {
      const caller = yield* person(10n)
      const chat = yield* Chat
      const before = (yield* received("chat")).length
      const refused = yield* Effect.catchTag(chat.complete({ caller, prompt }), "InsufficientCredits", Effect.succeed)
      const required = BigInt(JSON.stringify(prompt).length) + 500n
      const payer = billingAccountOf(caller.tenant_id)
      expect(refused).toMatchObject({ available: 10n, required, payer, reason: "balance" })
      expect(yield* received("chat")).toHaveLength(before)
      // The length of what the caller had sent bounds the prompt where it is given.
      const sent = yield* Effect.flip(
        chat.complete({ caller, prompt, json: Buffer.from(JSON.stringify(prompt).padEnd(1_000)) })
      )
      expect(sent).toMatchObject({ required: 1_500n })
      expect(yield* booksOf(caller)).toMatchObject({ calls: [], findings: [] })
    })
  )

  it.effect("that is not valid, or for a model that there is not, is refused by tag", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      const wrong = yield* Effect.flip(chat.stream({ caller, prompt: { ...prompt, temperature: 3 } }))
      expect(wrong).toMatchObject({
        _tag: "InvalidRequest",
        field: "temperature",
        rule: "must be a number from 0 to 2"
      })
      const unknown = yield* Effect.flip(chat.complete({ caller, prompt: { ...prompt, model: "large" } }))
      expect(unknown).toBeInstanceOf(UnknownChatModel)
      expect(unknown).toMatchObject({ _tag: "InvalidRequest", field: "model", model: "large" })
      expect(yield* booksOf(caller)).toMatchObject({ calls: [], findings: [] })
    })
  )

  it.effect("that an upstream refuses or fails says why as data, and costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      yield* fault("chat", { status: 422, body: { error: { message: "no tools here", param: "tools" } } })
      expect(yield* Effect.flip(chat.complete({ caller, prompt }))).toMatchObject({
        _tag: "UpstreamRejected",
        field: "tools",
        rule: "no tools here"
      })
      yield* fault("chat", { status: 429, headers: { "Retry-After": "7" } })
      expect(yield* Effect.flip(chat.stream({ caller, prompt }))).toMatchObject({
        _tag: "UpstreamBusy",
        upstream: "vendor",
        retry_after: 7
      })
      yield* fault("chat", { status: 500 })
      const failed = yield* Effect.flip(chat.complete({ caller, prompt }))
      expect(failed).toMatchObject({ _tag: "UpstreamFailed", upstream: "vendor" })
      expect(failed).toHaveProperty("body", { error: "the model could not answer", code: "upstream_error" })
      expect(yield* booksOf(caller)).toMatchObject({ balance: usd, reserved: 0n, findings: [] })
    })
  )

  it.effect("whose stream breaks fails at that event, and costs what was reported", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      yield* fault("chat", { drop: true })
      const { events, receipt } = yield* chat.stream({ caller, prompt })
      const read = yield* Effect.flip(Stream.runDrain(events))
      expect(read._tag).toBe("UpstreamFailed")
      expect(yield* receipt).toMatchObject({ charged: 0n, balance: usd })
      expect(yield* booksOf(caller)).toMatchObject({ calls: [{ success: false, error_type: "upstream_error" }] })
    })
  )

  it.effect("whose reader leaves is charged by what the upstream still says", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      yield* fault("chat", { chunk_delay_ms: 50 })
      const { events, receipt } = yield* chat.stream({ caller, prompt })
      // Taking one chunk, and no more, destroys the bytes behind them.
      yield* Stream.runDrain(Stream.take(events, 1))
      expect(yield* receipt).toMatchObject({ charged: cost })
      expect(yield* booksOf(caller)).toMatchObject({ calls: [{ success: true, cost }], reserved: 0n, findings: [] })
    })
  )
})

layer(over(room, "chat-a/v1"), { excludeTestServices: true })("a caller of chat that is interrupted", (it) => {
  it.effect("in the midst has what came charged, by one upstream", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      for (const call of [chat.complete({ caller, prompt }), Effect.asVoid(chat.stream({ caller, prompt }))]) {
        yield* fault("chat", holds)
        const before = (yield* received("chat")).length
        const { interrupted } = yield* interruptedAtWork("chat", call)
        expect(interrupted).toBe(true)
        expect(yield* received("chat")).toHaveLength(before + 1)
      }
      const { balance, calls, findings, reserved } = yield* settled(caller)
      expect({ balance, reserved, findings }).toEqual({ balance: usd - 2n * cost, reserved: 0n, findings: [] })
      expect(calls).toMatchObject([
        { success: true, cost },
        { success: true, cost }
      ])
    })
  )

  it.effect("before its request is sent has none sent", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      const before = (yield* received("chat")).length
      const asked = yield* Effect.fork(chat.complete({ caller, prompt }))
      // Until the admission waits for the books.
      yield* Effect.yieldNow()
      yield* Effect.yieldNow()
      expect(Exit.isInterrupted(yield* Fiber.interrupt(asked))).toBe(true)
      expect(yield* received("chat")).toHaveLength(before)
      const { balance, calls, findings, reserved } = yield* settled(caller)
      expect({ balance, reserved, findings }).toEqual({ balance: usd, reserved: 0n, findings: [] })
      for (const call of calls) expect(call).toMatchObject({ cost: 0n, error_type: "client_disconnected" })
    })
  )

  it.effect("is not failed over for, and hears of no failure", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const chat = yield* Chat
      const asked = { caller, prompt: { ...prompt, model: "twice" } }
      for (const call of [chat.complete(asked), Effect.asVoid(chat.stream(asked))]) {
        yield* fault("chat", { status: 503, ...holds })
        const before = (yield* received("chat")).length
        expect(yield* interruptedAtWork("chat", call)).toMatchObject({ interrupted: true })
        expect(yield* received("chat")).toHaveLength(before + 1)
      }
      const { balance, calls, findings } = yield* settled(caller)
      expect({ balance, findings }).toEqual({ balance: usd, findings: [] })
      expect(calls).toMatchObject([
        { success: false, cost: 0n, error_type: "client_disconnected" },
        { success: false, cost: 0n, error_type: "client_disconnected" }
      ])
      // Nobody left: the second is asked.
      yield* fault("chat", { status: 503 })
      yield* chat.complete(asked)
      expect((yield* received("chat"))[0]?.body.model).toBe("second")
    })
  )
})
