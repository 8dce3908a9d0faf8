/** Bytes on their way: held back by their reader, looked at by a tap, ended only when that is settled. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { Readable } from "node:stream"
import { vi } from "vitest"
import { readOnFor } from "../../src/kernel/ReadOn.ts"
import { ByteStream, closeIfUnclaimed, ofReadable, whole } from "../../src/upstream/wire/ByteStream.ts"
import type { Sink, Source } from "../../src/upstream/wire/ByteStream.ts"

/** A source that is steered by hand. */
const byHand = () => {
  const told: Array<string> = []
  let sink: Sink | undefined
  const source: Source = {
    flow: (to) => {
      sink = to
    },
    pause: () => void told.push("pause"),
    resume: () => void told.push("resume"),
    abort: () => void told.push("abort")
  }
  return { source, told, send: (bytes: string | Buffer) => sink!.data(Buffer.from(bytes as string)), sink: () => sink! }
}

const collected = (body: Readable) =>
  Effect.promise(async () => {
    const had: Array<Buffer> = []
    for await (const chunk of body) had.push(chunk as Buffer)
    return Buffer.concat(had).toString()
  })

const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

describe("a byte stream", () => {
  it.live("pauses its source while its reader has enough", () =>
    Effect.gen(function* () {
      const { send, source, told } = byHand()
      const stream = new ByteStream(source, { tap: whole, read_on: 0 })
      send("x".repeat(10))
      expect(told).toEqual([])
      send(Buffer.alloc(64 * 1024))
      expect(told).toEqual(["pause"])
      stream.body.resume()
      yield* turn
      expect(told).toContain("resume")
    })
  )

  it.live("ends for its reader when its end is settled", () =>
    Effect.gen(function* () {
      const { send, sink, source } = byHand()
      const stream = new ByteStream(source, { tap: whole, read_on: 0 })
      const read = yield* Effect.fork(collected(stream.body))
      send("a")
      sink().end()
      expect(yield* stream.ended).toBe("complete")
      yield* turn
      expect(read.unsafePoll()).toBeNull()
      stream.finish("b")
      expect(yield* Fiber.join(read)).toBe("ab")
    })
  )

  it.live("is what its tap makes of it, and ends where that says", () =>
    Effect.gen(function* () {
      const { send, sink, source, told } = byHand()
      const stream = new ByteStream(source, {
        read_on: 0,
        tap: {
          data: (chunk, to) => {
            if (chunk.includes("!")) {
              to.end("broken")
              to.abort()
            } else to.pass(Buffer.from(chunk.toString().toUpperCase()))
          }
        }
      })
      const read = yield* Effect.fork(collected(stream.body))
      for (const bytes of ["a", "!", "b"]) send(bytes)
      sink().end()
      expect(yield* stream.ended).toBe("broken")
      expect(told).toContain("abort")
      stream.finish()
      expect(yield* Fiber.join(read)).toBe("A")
    })
  )

  it.live("is read on for a while for a reader that has left, or not at all", () =>
    Effect.gen(function* () {
      for (const read_on of [0, 30, 60_000]) {
        const { send, sink, source, told } = byHand()
        let seen = ""
        const stream = new ByteStream(source, {
          read_on,
          tap: {
            data: (chunk, to) => {
              seen += chunk.toString()
              to.pass(chunk)
            }
          }
        })
        send("a")
        stream.body.destroy()
        send("b")
        expect(seen).toBe(read_on === 0 ? "a" : "ab")
        if (read_on === 60_000) sink().end()
        expect(yield* stream.ended).toBe(read_on === 60_000 ? "complete" : "left")
        expect(told.includes("abort")).toBe(read_on !== 60_000)
        stream.finish("c")
        expect(stream.body.destroyed).toBe(true)
      }
    })
  )

  it.live("says whether anything came", () =>
    Effect.gen(function* () {
      const some = byHand()
      const first = new ByteStream(some.source, { tap: whole, read_on: 0 })
      const begun = yield* Effect.fork(first.begun(true))
      yield* turn
      expect(begun.unsafePoll()).toBeNull()
      some.send("a")
      expect(yield* Fiber.join(begun)).toBe(true)

      const none = byHand()
      const second = new ByteStream(none.source, { tap: whole, read_on: 0 })
      none.sink().cut("gone")
      expect(yield* second.begun(true)).toBe(false)
      expect(yield* second.ended).toBe("broken")
    })
  )

  it.live("is unfinished, not broken, if its source fails after its reader has held it up for ten seconds in all", () =>
    Effect.gen(function* () {
      let now = 0
      const clock = vi.spyOn(performance, "now").mockImplementation(() => now)
      const cut = Effect.fnUntraced(function* (...pauses: ReadonlyArray<number>) {
        const { send, sink, source } = byHand()
        const stream = new ByteStream(source, { tap: whole, read_on: 0 })
        for (const pause of pauses) {
          send(Buffer.alloc(64 * 1024))
          now += pause
          while (stream.body.read() !== null);
          // Nothing waits for the reader now.
          now += readOnFor
        }
        sink().cut("reset")
        return yield* stream.ended
      })
      yield* Effect.ensuring(
        Effect.gen(function* () {
          expect(yield* cut()).toBe("broken")
          expect(yield* cut(readOnFor)).toBe("broken")
          expect(yield* cut(readOnFor + 1)).toBe("unfinished")
          expect(yield* cut(readOnFor / 2, readOnFor / 2 + 1)).toBe("unfinished")
        }),
        Effect.sync(() => clock.mockRestore())
      )

      const { send, sink, source } = byHand()
      const stream = new ByteStream(source, { tap: whole, read_on: 0 })
      const began = performance.now()
      send(Buffer.alloc(64 * 1024))
      const later = vi.spyOn(performance, "now").mockReturnValue(began + readOnFor + 1_000)
      sink().cut("reset")
      later.mockRestore()
      // It was still paused.
      expect(yield* stream.ended).toBe("unfinished")
    })
  )

  it.live("passes another stream on, and leaves it when its own reader leaves", () =>
    Effect.gen(function* () {
      const stream = new ByteStream(ofReadable(Readable.from([Buffer.from("a"), Buffer.from("b")])), {
        tap: whole,
        read_on: 0
      })
      const read = yield* Effect.fork(collected(stream.body))
      expect(yield* stream.ended).toBe("complete")
      stream.finish()
      expect(yield* Fiber.join(read)).toBe("ab")

      const endless = new Readable({ read: () => {} })
      const left = new ByteStream(ofReadable(endless), { tap: whole, read_on: 0 })
      left.body.destroy()
      expect(yield* left.ended).toBe("left")
      expect(endless.destroyed).toBe(true)

      const breaks = new Readable({ read: () => {} })
      const broken = new ByteStream(ofReadable(breaks), { tap: whole, read_on: 0 })
      breaks.destroy(new Error("broke off"))
      expect(yield* broken.ended).toBe("broken")
    })
  )

  it.live("is left where who asked for it has left before having it", () =>
    Effect.gen(function* () {
      const { source, told } = byHand()
      const bytes = new ByteStream(source, { tap: whole, read_on: 0 }).body
      const made = yield* Deferred.make<void>()
      const asked = yield* Effect.fork(closeIfUnclaimed(Effect.as(Deferred.await(made), bytes), (made) => made))
      yield* turn
      const left = yield* Effect.fork(Fiber.interrupt(asked))
      yield* turn
      yield* Deferred.succeed(made, undefined)
      expect(Exit.isInterrupted(yield* Fiber.join(left))).toBe(true)
      expect(told).toEqual(["abort"])

      const { body } = new ByteStream(byHand().source, { tap: whole, read_on: 0 })
      expect((yield* closeIfUnclaimed(Effect.succeed(body), (made) => made)).destroyed).toBe(false)
    })
  )
})
