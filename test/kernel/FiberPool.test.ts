import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import * as FiberPool from "../../src/kernel/FiberPool.ts"

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
})
