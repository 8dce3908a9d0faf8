import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import * as FiberPool from "../../src/kernel/hot/FiberPool.ts"

describe("a pool of fibers", () => {
  it.scopedLive(
    "is quiet when what runs in it is over, and is waited for no longer than is said, at the end of a scope too",
    () =>
      Effect.gen(function* () {
        const fibers = yield* FiberPool.make
        const over = yield* Deferred.make<void>()
        const told: Array<string> = []
        fibers.run(Deferred.await(over))
        const scope = yield* Scope.make()
        yield* Scope.addFinalizer(
          scope,
          Effect.andThen(fibers.quiet("20 millis"), () => void told.push("not yet"))
        )
        yield* Scope.close(scope, Exit.void)
        const waiting = yield* Effect.fork(Effect.andThen(fibers.quiet("1 minute"), () => void told.push("over")))
        yield* Deferred.succeed(over, undefined)
        yield* waiting
        expect(told).toEqual(["not yet", "over"])
      })
  )

  it.scopedLive("gives every fiber its turn, and the event loop too", () =>
    Effect.gen(function* () {
      const fibers = yield* FiberPool.make
      const told: Array<string> = []
      const twice = (name: string) => {
        const tell = Effect.sync(() => void told.push(name))
        return Effect.zipRight(tell, Effect.zipRight(Effect.yieldNow(), tell))
      }
      fibers.run(twice("one"))
      fibers.run(twice("other"))
      yield* fibers.quiet("1 minute")
      expect(told).toEqual(["one", "other", "one", "other"])
      // Neither steps without end nor fibers that keep waking each other keep a timer from its turn.
      for (const step of [Effect.void, Effect.yieldNow()]) {
        let over = false
        setTimeout(() => (over = true), 0)
        const goOn: Effect.Effect<void> = Effect.suspend(() => (over ? Effect.void : Effect.zipRight(step, goOn)))
        fibers.run(goOn)
        yield* fibers.quiet("1 minute")
      }
    })
  )
})
