import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Exit, Scope, TestClock } from "effect"
import * as Loop from "../../src/kernel/Loop.ts"

const observed = (events: Array<string>) =>
  Effect.provideService(Loop.LoopObserver, (loop: string, event: Loop.LoopEvent) => {
    events.push(event._tag === "Turned" ? `${loop} ${event.failed ? "failed" : "turned"}` : `${loop} ${event._tag}`)
  })

describe("a loop", () => {
  it.scoped("turns at its pace, and at once when woken", () =>
    Effect.gen(function* () {
      let turns = 0
      const waker = yield* Loop.waker
      const turn = Effect.sync(() => (turns++, Duration.seconds(10)))
      yield* Loop.fork({ name: "clockwork", turn, waker })
      yield* TestClock.adjust("25 seconds")
      expect(turns).toBe(3)
      yield* waker.wake
      yield* TestClock.adjust("1 millis")
      expect(turns).toBe(4)
    })
  )

  it.scoped("waits to be woken where nothing is due", () =>
    Effect.gen(function* () {
      let turns = 0
      const waker = yield* Loop.waker
      yield* Loop.fork({ name: "clockwork", turn: Effect.sync(() => void turns++), waker })
      yield* TestClock.adjust("1 hour")
      expect(turns).toBe(1)
      yield* waker.wake
      yield* TestClock.adjust("1 millis")
      expect(turns).toBe(2)
    })
  )

  it.scoped("takes over what replaced services began: before the first turn, and when they have ended", () => {
    const events: Array<string> = []
    const loops = new Set<() => void>()
    const handovers = {
      on: (takeOver: () => void) =>
        Effect.acquireRelease(
          Effect.sync(() => void loops.add(takeOver)),
          () => Effect.sync(() => void loops.delete(takeOver))
        )
    }
    return Effect.gen(function* () {
      const scope = yield* Scope.make()
      const turn = Effect.sync(() => void events.push("turn"))
      const takeOver = Effect.sync(() => events.push("take over"))
      yield* Scope.extend(Loop.fork({ name: "clockwork", turn, waker: yield* Loop.waker, takeOver }), scope)
      yield* TestClock.adjust("1 millis")
      expect(events).toEqual(["take over", "turn"])
      for (const tell of loops) tell()
      yield* TestClock.adjust("1 millis")
      expect(events).toEqual(["take over", "turn", "take over", "turn"])
      yield* Scope.close(scope, Exit.void)
      expect(loops.size).toBe(0)
    }).pipe(Effect.provideService(Loop.Handovers, handovers))
  })

  it.scoped("survives failures and defects, pauses longer after each, and reports them", () => {
    const events: Array<string> = []
    return Effect.gen(function* () {
      let turns = 0
      yield* Loop.fork({
        name: "clockwork",
        turn: Effect.suspend(() => {
          turns++
          if (turns === 1) return Effect.fail("a failure")
          if (turns === 2) return Effect.dieMessage("a defect")
          return Effect.succeed(undefined)
        })
      })
      yield* TestClock.adjust("1 millis")
      expect(turns).toBe(1)
      yield* TestClock.adjust("1 seconds")
      expect(turns).toBe(2)
      yield* TestClock.adjust("1 seconds")
      expect(turns).toBe(2)
      yield* TestClock.adjust("1 seconds")
      expect(turns).toBe(3)
      expect(events).toEqual([
        "clockwork Began",
        "clockwork failed",
        "clockwork Began",
        "clockwork failed",
        "clockwork Began",
        "clockwork turned"
      ])
    }).pipe(observed(events))
  })

  it.effect("says that its scope was closed, and that it stopped where it was not", () => {
    const events: Array<string> = []
    return Effect.gen(function* () {
      const turn = Effect.succeed(undefined)
      yield* Effect.scoped(Effect.andThen(Loop.fork({ name: "closed", turn }), Effect.yieldNow()))
      const scope = yield* Scope.make()
      yield* Scope.extend(Loop.fork({ name: "stopped", turn: Effect.interrupt }), scope)
      yield* TestClock.adjust("1 millis")
      expect(events).toEqual([
        "closed Began",
        "closed turned",
        "closed Ended",
        "closed Stopped",
        "stopped Began",
        "stopped Stopped"
      ])
      yield* Scope.close(scope, Exit.void)
    }).pipe(observed(events))
  })

  it.effect("handles each item by itself", () =>
    Effect.gen(function* () {
      const handled: Array<number> = []
      const failed = yield* Loop.each("clockwork", [1, 2, 3], String, (item) =>
        item === 2 ? Effect.dieMessage("bad row") : Effect.sync(() => handled.push(item))
      )
      expect(handled).toEqual([1, 3])
      expect(failed).toBe(1)
    })
  )
})
