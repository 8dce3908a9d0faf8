/** Transcriptions as a program asks for them, without HTTP: values, receipts, and refusals by their tags. */
import { expect, layer, vi } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import { usd } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import type { Audio } from "../../../src/calls/transcription/Audio.ts"
import { events, formatted } from "../../../src/calls/transcription/Formats.ts"
import { TranscriptionProviders } from "../../../src/calls/transcription/Settings.ts"
import type { TranscriptionProvider } from "../../../src/calls/transcription/Settings.ts"
import { Transcription } from "../../../src/calls/transcription/Transcription.ts"
import { UnknownModel, UnknownProvider } from "../../../src/upstream/models/Provider.ts"
import { flac, mp3s, opus, wave } from "../../support/Sounds.ts"
import { booksOf, fault, holds, interruptedAtWork, over, person, received } from "../../support/Called.ts"

/** 0.0001 USD a second. */
const price = 100_000_000_000_000n as UnitPrice
const second = 100_000n

const provider: TranscriptionProvider = {
  id: "vendor",
  name: "Vendor",
  description: "",
  upstream: "vendor",
  models: [
    {
      id: "whisper-1",
      upstream_model: "whisper-1",
      wire_format: "verbose_json",
      translates: false,
      max_seconds: 60,
      price
    },
    {
      id: "dear",
      upstream_model: "whisper-1",
      wire_format: "json",
      translates: false,
      max_seconds: 7_200,
      price: (2n * price) as UnitPrice
    }
  ]
}

const file = { name: "a.wav", content_type: "audio/wav" }
/** It lasts three seconds there. Its format is unknown, so it reserves the 60 seconds of its model. */
const bytes = Buffer.alloc(48_000, "a")
const audio: Audio = { ...file, bytes }

const room = Transcription.layer.pipe(Layer.provide(Layer.succeed(TranscriptionProviders, [provider])))

layer(over(room, "audio-text/v1"), { excludeTestServices: true })("a transcription", (it) => {
  it.effect("reserves what its audio can last, and charges what the vendor reports", () =>
    Effect.gen(function* () {
      const { transcribe } = yield* Transcription
      const m4a = Buffer.concat([Buffer.from("\0\0\0\x20ftypM4A "), Buffer.alloc(5_000, 7)])
      const stream = () => ({ stream: Readable.from([mp3s(100)]), length: 41_700 })
      for (const [sound, seconds] of [
        // An M4A of an hour in five kilobytes, and the same of a stream.
        [() => ({ bytes: m4a }), 7_200],
        [stream, 7_200],
        // The frames of silence count; so does a junk byte between frames of MP3.
        [() => ({ bytes: flac({ frames: 50_000 }) }), 4_645],
        [() => ({ bytes: opus(Array.from({ length: 500 }, () => Buffer.from([(1 << 3) | 3, 6]))) }), 61],
        [() => ({ bytes: wave({ rate: 10, bytes: 5_000 }) }), 501],
        [() => ({ bytes: Buffer.concat([mp3s(100), Buffer.from("j"), mp3s(1)]) }), 7_200],
        [() => ({ bytes: mp3s(100) }), 42]
      ] as const) {
        const most = BigInt(seconds) * 2n * second
        const call = (caller: Caller) => transcribe({ caller, model: "dear", audio: { ...file, ...sound() } })
        const poor = yield* person(most - 1n)
        expect(yield* Effect.flip(call(poor))).toMatchObject({ _tag: "InsufficientCredits", required: most })
        const payer = yield* person(most)
        yield* fault("transcription", {
          status: 200,
          body: { text: "x", usage: { seconds: Math.min(3_600, seconds) } }
        })
        const { receipt } = yield* call(payer)
        expect(receipt.charged).toBe(BigInt(Math.min(3_600, seconds)) * 2n * second)
        expect(yield* booksOf(payer)).toMatchObject({ reserved: 0n, findings: [] })
      }
    })
  )

  it.effect("with a long response is read on another thread, in every format", () =>
    Effect.gen(function* () {
      const { transcribe } = yield* Transcription
      const segments = Array.from({ length: 6_000 }, (_, i) => ({ start: i, end: i + 1, text: ` the tide ${i} ` }))
      const body = { text: "word ".repeat(10_000), duration: 7, segments, usage: { type: "duration", seconds: 7 } }
      for (const detail of [undefined, "verbose", "segments"] as const) {
        const caller = yield* person(usd)
        yield* fault("transcription", { status: 200, body })
        const parsing = vi.spyOn(JSON, "parse")
        const transcript = yield* transcribe({ caller, audio, detail })
        const written = (["text", "srt", "vtt", "json", "verbose_json"] as const)
          .filter((format) => detail === "segments" || !["srt", "vtt"].includes(format))
          .map((format) => [format, formatted(transcript, format).body.toString()] as const)
        const streamed = events(transcript)
        expect(parsing.mock.calls.map(([text]) => text.length).filter((length) => length > 200_000)).toEqual([])
        parsing.mockRestore()
        const upstream = { format: "verbose_json", bytes: Buffer.from(JSON.stringify(body)), body } as const
        const short = { ...transcript, upstream }
        expect(written).toEqual(written.map(([format]) => [format, formatted(short, format).body.toString()]))
        expect(streamed).toEqual(events(short))
        expect([transcript.text, transcript.receipt.charged]).toEqual([body.text, 7n * second])
      }
      const caller = yield* person(usd)
      yield* fault("transcription", { status: 200, body: { ...body, segments: [...segments, { start: "x" }] } })
      const failed = yield* Effect.flip(transcribe({ caller, audio, detail: "segments" }))
      expect(failed).toMatchObject({ _tag: "UpstreamFailed" })
      expect((yield* booksOf(caller)).calls).toMatchObject([{ success: false, cost: 7n * second }])
    })
  )

  it.effect(
    "charges the counted length, or else an estimate within the reservation, if the vendor reports no duration",
    () =>
      Effect.gen(function* () {
        const { transcribe } = yield* Transcription
        const m4a = (bytes: number) => Buffer.concat([Buffer.from("\0\0\0\x20ftypM4A "), Buffer.alloc(bytes - 12, 7)])
        for (const [sound, text, seconds] of [
          [mp3s(1_000), "x", 27],
          [flac({ frames: 5_000 }), "x", 465],
          [wave({ rate: 8_000, bytes: 800_000 }), "x", 100],
          [m4a(500), "", 30],
          [m4a(400_000), "x", 100],
          [m4a(500), "x".repeat(1_500), 60],
          [m4a(500), "x".repeat(750), 50]
        ] as const) {
          const caller = yield* person(usd)
          yield* fault("transcription", { status: 200, body: { text } })
          expect((yield* transcribe({ caller, audio: { ...file, bytes: sound } })).receipt.charged).toBe(
            BigInt(seconds) * second
          )
          expect(yield* booksOf(caller)).toMatchObject({
            calls: [{ units: seconds, usage_source: "estimated" }],
            findings: []
          })
        }
      })
  )

  it.scoped("is a value with its receipt, whether its audio is bytes, a file or a stream", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "tollgate-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      )
      const path = join(folder, "audio")
      writeFileSync(path, bytes)
      const caller = yield* person(usd)
      const { transcribe } = yield* Transcription
      const length = bytes.length
      const stream = Readable.from([bytes.subarray(0, 1_000), bytes.subarray(1_000)])
      for (const one of [audio, { ...file, path, length }, { ...file, stream, length }]) {
        const { receipt, upstream, ...transcript } = yield* transcribe({ caller, audio: one })
        expect(upstream).toMatchObject({ format: "verbose_json", body: { duration: 3 } })
        expect(transcript).toEqual({ text: "3 seconds of a.wav", duration: 3, provider: "vendor" })
        expect(receipt.charged).toBe(3n * second)
      }
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - 9n * second,
        reserved: 0n,
        calls: [1, 2, 3].map(() => ({ cost: 3n * second, units: 3, usage_source: "provider", success: true })),
        findings: []
      })
    })
  )

  it.effect("says beforehand by whom it is done, and at what cost at most", () =>
    Effect.gen(function* () {
      const { least, quote } = yield* Transcription
      expect(least).toBe(second)
      expect(yield* quote({}, bytes.length)).toEqual({ provider: "vendor", model: "whisper-1", most: 60n * second })
      expect(yield* quote({ model: "dear" }, 1)).toEqual({ provider: "vendor", model: "dear", most: 14_400n * second })
      const model = yield* Effect.flip(quote({ model: "x" }, 1))
      expect(model).toBeInstanceOf(UnknownModel)
      expect(model).toMatchObject({ model: "x", models: ["whisper-1", "dear"] })
      const who = yield* Effect.flip(quote({ provider: "x" }, 1))
      expect(who).toBeInstanceOf(UnknownProvider)
      expect(who).toMatchObject({ provider: "x", providers: ["vendor"] })
    })
  )

  it.effect("that cannot be paid is refused with amounts, reaches no vendor, and lets go of its stream", () =>
    Effect.gen(function* () {
      const caller = yield* person(60n * second - 1n)
      const { transcribe } = yield* Transcription
      const before = (yield* received("transcription")).length
      const stream = Readable.from([bytes])
      const call = transcribe({ caller, audio: { ...file, stream, length: bytes.length } })
      const refused = yield* Effect.catchTag(call, "InsufficientCredits", Effect.succeed)
      const payer = billingAccountOf(caller.tenant_id)
      expect(refused).toMatchObject({ available: 60n * second - 1n, required: 60n * second, payer, reason: "balance" })
      expect(stream.destroyed).toBe(true)
      expect(yield* received("transcription")).toHaveLength(before)
      expect(yield* booksOf(caller)).toMatchObject({ calls: [], findings: [] })
    })
  )

  it.effect("of no audio, or too much, is refused", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { transcribe } = yield* Transcription
      const stream = Readable.from([bytes])
      const empty = yield* Effect.flip(transcribe({ caller, audio: { ...file, bytes: new Uint8Array() } }))
      expect(empty).toMatchObject({ _tag: "InvalidRequest", field: "file" })
      const long = yield* Effect.flip(transcribe({ caller, audio: { ...file, stream, length: 26 * 1024 * 1024 } }))
      expect(long._tag).toBe("AudioTooLarge")
      expect(yield* booksOf(caller)).toMatchObject({ balance: usd, calls: [] })
    })
  )

  it.effect("that the vendor refuses, or whose audio is not as long as it says, fails and costs nothing", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { transcribe } = yield* Transcription
      yield* fault("transcription", { status: 413, body: { error: { message: "too long" } } })
      const rejected = yield* Effect.catchTag(transcribe({ caller, audio }), "UpstreamRejected", Effect.succeed)
      expect(rejected).toMatchObject({ field: "", rule: "too long" })
      for (const length of [bytes.length - 1, bytes.length + 1]) {
        const stream = Readable.from([bytes])
        const failed = yield* Effect.flip(transcribe({ caller, audio: { ...file, stream, length } }))
        expect(failed._tag).toBe("UpstreamFailed")
      }
      const { balance, calls, findings, reserved } = yield* booksOf(caller)
      expect([balance, reserved, findings]).toEqual([usd, 0n, []])
      expect(calls).toHaveLength(3)
    })
  )

  it.effect("costs what an answer reports that is no JSON", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { transcribe } = yield* Transcription
      yield* fault("transcription", {
        status: 200,
        body: '{"duration":2,"text":"hi","segments":[{"avg_logprob":1},]}'
      })
      expect((yield* Effect.flip(transcribe({ caller, audio })))._tag).toBe("UpstreamFailed")
      yield* fault("transcription", { status: 200, body: '{"text":"hi","segments":[{"avg_logprob":1},]}' })
      expect((yield* Effect.flip(transcribe({ caller, audio })))._tag).toBe("UpstreamFailed")
      const { calls, findings } = yield* booksOf(caller)
      expect(findings).toEqual([])
      expect(calls.map(({ cost, success }) => [cost > 0n, success])).toEqual([
        [true, false],
        [false, false]
      ])
    })
  )

  it.effect("has null for numbers that JSON does not have", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { transcribe } = yield* Transcription
      yield* fault("transcription", { status: 200, body: '{"text":"hi","segments":[{"avg_logprob":-Infinity}]}' })
      const { receipt, text, upstream } = yield* transcribe({ caller, audio })
      expect(text).toBe("hi")
      expect(JSON.parse(upstream.bytes.toString())).toEqual({ text: "hi", segments: [{ avg_logprob: null }] })
      expect(receipt.charged).toBeGreaterThan(0n)
    })
  )

  it.effect("whose caller leaves is charged for what the vendor still hears", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const { transcribe } = yield* Transcription
      yield* fault("transcription", holds)
      const { interrupted } = yield* interruptedAtWork("transcription", transcribe({ caller, audio }))
      expect(interrupted).toBe(true)
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - 3n * second,
        reserved: 0n,
        calls: [{ success: true, cost: 3n * second }],
        findings: []
      })
    })
  )
})
