/** Work of somebody outside, whose caller leaves before it has begun there. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Work } from "../../src/kernel/ReadOn.ts"

describe("work that is handed over and not under way yet", () => {
  it.effect("is not begun once its caller has left", () =>
    Effect.gen(function* () {
      const work = new Work<string, never>()
      const waits = yield* Effect.fork(work.done(() => {}))
      yield* Effect.yieldNow()
      yield* Fiber.interruptFork(waits)
      yield* Effect.promise(() => new Promise(setImmediate))
      let stopped = false
      work.started(() => (stopped = true))
      expect(stopped).toBe(true)
      expect(Exit.isInterrupted(yield* Fiber.await(waits))).toBe(true)
    })
  )
})
