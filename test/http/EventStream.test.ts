import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber, TestClock } from "effect"
import { EventStream } from "../../src/http/transport/EventStream.ts"

const long = "x".repeat(64 * 1024)

describe("a client that does not read", () => {
  it.effect("is waited for, and given up after half a minute", () =>
    Effect.gen(function* () {
      const stream = new EventStream()
      expect(yield* stream.send(long)).toBe(true)
      const waiting = yield* Effect.fork(stream.send("more"))
      yield* TestClock.adjust(Duration.seconds(29))
      expect(waiting.unsafePoll()).toBe(null)
      yield* TestClock.adjust(Duration.seconds(2))
      expect(yield* Fiber.join(waiting)).toBe(false)
      expect(stream.readableLength).toBe(long.length)
    })
  )

  it.effect("goes on where it reads again", () =>
    Effect.gen(function* () {
      const stream = new EventStream()
      yield* stream.send(long)
      const waiting = yield* Effect.fork(stream.send("more"))
      yield* Effect.yieldNow()
      stream.setEncoding("utf8")
      const read: Array<string> = []
      stream.on("data", (text: string) => read.push(text))
      expect(yield* Fiber.join(waiting)).toBe(true)
      stream.endWith("end")
      yield* Effect.promise(() => new Promise((resolve) => stream.once("end", resolve)))
      expect(read.join("")).toBe(`${long}moreend`)
    })
  )

  it.effect("that has left holds nobody up", () =>
    Effect.gen(function* () {
      const stream = new EventStream()
      yield* stream.send(long)
      const waiting = yield* Effect.fork(stream.send("more"))
      yield* Effect.yieldNow()
      stream.destroy()
      yield* Fiber.join(waiting)
      stream.endWith("end")
      expect(stream.destroyed).toBe(true)
    })
  )
})
