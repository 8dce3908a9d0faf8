/** Speech as a program asks for it, without HTTP: a stream with its receipt, and refusals by their tags. */
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { buffer } from "node:stream/consumers"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { SpeechProviders } from "../../../src/calls/speech/Settings.ts"
import type { SpeechProvider } from "../../../src/calls/speech/Settings.ts"
import type { SpeechRequest } from "../../../src/calls/speech/Request.ts"
import { Speech } from "../../../src/calls/speech/Speech.ts"
import { UnknownModel } from "../../../src/upstream/models/Provider.ts"
import { booksOf, fault, holds, interruptedAtWork, over, person, received, settled } from "../../support/Called.ts"

/** 0.000015 USD a character. */
const price = 15_000_000_000_000n as UnitPrice
const character = 15_000n

const provider: SpeechProvider = {
  id: "vendor",
  name: "Vendor",
  description: "",
  upstream: "vendor",
  models: [{ id: "tts-1", upstream_model: "tts-1", events: false, price }]
}

/** A kilobyte of audio for each character. */
const request: SpeechRequest = { input: "The tide is in.", voice: "alloy", response_format: "opus" }
const cost = 15n * character

const room = Speech.layer.pipe(Layer.provide(Layer.succeed(SpeechProviders, [provider])))

layer(over(room, "audio-speech/v1"), { excludeTestServices: true })("speech", (it) => {
  it.effect("is a stream whose cost is known ahead, and whose receipt comes with its end", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { speak } = yield* Speech
      const spoken = yield* speak({ caller, request })
      expect([spoken.content_type, spoken.cost]).toEqual(["audio/opus", cost])
      const audio = yield* Effect.promise(() => buffer(spoken.audio))
      expect(audio.length).toBe(15 * 1_024)
      const receipt = yield* spoken.receipt
      expect(receipt).toMatchObject({ charged: cost, balance: usd - cost })
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - cost,
        reserved: 0n,
        calls: [{ id: receipt.usage_id, cost, units: 15, success: true }],
        findings: []
      })
    })
  )

  it.effect("that cannot be paid is refused with amounts, and reaches no vendor", () =>
    Effect.gen(function* () {
      const caller = yield* person(cost - 1n)
      const { speak } = yield* Speech
      const before = (yield* received("speech")).length
      const refused = yield* Effect.catchTag(speak({ caller, request }), "InsufficientCredits", Effect.succeed)
      const payer = billingAccountOf(caller.tenant_id)
      expect(refused).toMatchObject({ available: cost - 1n, required: cost, payer, reason: "balance" })
      expect(yield* received("speech")).toHaveLength(before)
      expect(yield* booksOf(caller)).toMatchObject({ calls: [], findings: [] })
    })
  )

  it.effect("by a model that there is not is refused with those that there are", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { speak } = yield* Speech
      const refused = yield* Effect.flip(speak({ caller, request: { ...request, model: "tts-9" } }))
      expect(refused).toBeInstanceOf(UnknownModel)
      expect(refused).toMatchObject({ _tag: "InvalidRequest", model: "tts-9", models: ["tts-1"] })
    })
  )

  it.effect("that the vendor refuses, or that is no audio, fails and costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { speak } = yield* Speech
      yield* fault("speech", { status: 400, body: { error: { message: "not that", param: "input" } } })
      expect(yield* Effect.flip(speak({ caller, request }))).toMatchObject({ _tag: "UpstreamRejected", field: "input" })
      yield* fault("speech", { status: 200, body: { error: "out of memory" } })
      expect((yield* Effect.flip(speak({ caller, request })))._tag).toBe("UpstreamFailed")
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd,
        reserved: 0n,
        calls: [{ error_type: "upstream_rejected" }, { error_type: "upstream_error" }],
        findings: []
      })
    })
  )

  it.effect("that the vendor breaks off ends with an error, and costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { speak } = yield* Speech
      yield* fault("speech", { drop: true })
      const spoken = yield* speak({ caller, request })
      const read = yield* Effect.exit(Effect.tryPromise(() => buffer(spoken.audio)))
      expect(read._tag).toBe("Failure")
      expect(yield* spoken.receipt).toMatchObject({ charged: 0n, balance: usd })
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd,
        reserved: 0n,
        calls: [{ success: false, cost: 0n, error_type: "upstream_error" }],
        findings: []
      })
    })
  )

  it.effect("that its reader leaves was made all the same", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { speak } = yield* Speech
      yield* fault("speech", { chunk_delay_ms: 200 })
      const spoken = yield* speak({ caller, request })
      spoken.audio.destroy()
      expect(yield* spoken.receipt).toMatchObject({ charged: cost, balance: usd - cost })
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - cost,
        reserved: 0n,
        calls: [{ success: true, cost, error_type: null }],
        findings: []
      })
    })
  )

  it.effect.each([
    { length: "short", input: request.input },
    { length: "longer than what waits for a reader", input: "x".repeat(1_000) }
  ])("whose caller leaves before it begins is charged for what the vendor made: $length", ({ input }) =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { speak } = yield* Speech
      yield* fault("speech", holds)
      const call = speak({ caller, request: { ...request, input } })
      const { interrupted } = yield* interruptedAtWork("speech", call)
      expect(interrupted).toBe(true)
      const cost = BigInt(input.length) * character
      expect(yield* settled(caller)).toMatchObject({
        balance: usd - cost,
        reserved: 0n,
        calls: [{ success: true, cost }],
        findings: []
      })
    })
  )
})
