/** The clock that can be moved. */
import { Clock, Duration, Effect, Fiber, Layer, Schedule } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import * as SteeredClock from "../../src/sandbox/SteeredClock.ts"
import { freshFolder } from "./Scene.ts"

const day = 86_400_000

const run = <A>(test: (clock: SteeredClock.SteeredClock) => Effect.Effect<A>): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(SteeredClock.make(undefined), (clock) => Effect.withClock(test(clock), clock.clock)).pipe(
      Effect.orDie
    )
  )

/** Lets other fibers reach their sleep. */
const settle = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))

describe("the steered clock", () => {
  it("shows real time plus its offset", () =>
    run((clock) =>
      Effect.gen(function* () {
        const before = yield* Clock.currentTimeMillis
        const nanos = yield* Clock.currentTimeNanos
        expect(Math.abs(before - performance.timeOrigin - performance.now())).toBeLessThan(60_000)
        expect(Math.abs(Number(nanos / 1_000_000n) - before)).toBeLessThan(60_000)
        expect(yield* clock.advance(30 * day)).toBeGreaterThanOrEqual(before + 30 * day)
        expect(yield* Clock.currentTimeMillis).toBeGreaterThanOrEqual(before + 30 * day)
        expect(yield* Clock.currentTimeNanos).toBeGreaterThanOrEqual(nanos + BigInt(30 * day) * 1_000_000n)
        expect(clock.now()).toBeLessThan(before + 31 * day)
      })
    ))

  it("wakes due sleepers in order", () =>
    run((clock) =>
      Effect.gen(function* () {
        const woken: Array<number> = []
        const sleepers = yield* Effect.forEach([30, 2, 60, 1], (days) =>
          Effect.fork(
            Effect.andThen(
              Effect.sleep(Duration.days(days)),
              Effect.sync(() => woken.push(days))
            )
          )
        )
        yield* settle
        yield* clock.advance(30 * day)
        yield* settle
        expect(woken).toEqual([1, 2, 30])
        // 30 more days make 60, in one move or in several.
        yield* clock.advance(29 * day)
        yield* settle
        expect(woken).toHaveLength(3)
        yield* clock.advance(day)
        yield* Fiber.joinAll(sleepers)
        expect(woken).toEqual([1, 2, 30, 60])
      })
    ))

  it("also wakes sleepers by waiting, including those that a move brought close", () =>
    run((clock) =>
      Effect.gen(function* () {
        yield* Effect.sleep(1)
        const sleeper = yield* Effect.fork(Effect.sleep(day))
        yield* settle
        yield* clock.advance(day - 20)
        yield* Fiber.join(sleeper)
      })
    ))

  it("lets a sleeper be interrupted, and sleep forever", () =>
    run((clock) =>
      Effect.gen(function* () {
        const fibers = [yield* Effect.fork(Effect.sleep(day)), yield* Effect.fork(Effect.sleep(Duration.infinity))]
        yield* settle
        yield* Fiber.interrupt(fibers[0]!)
        yield* clock.advance(2 * day)
        yield* settle
        expect((yield* Fiber.poll(fibers[1]!))._tag).toBe("None")
        yield* Fiber.interruptAll(fibers)
      })
    ))

  it("moves timeouts and schedules", () =>
    run((clock) =>
      Effect.gen(function* () {
        let swept = 0
        const timed = yield* Effect.fork(Effect.timeoutOption(Effect.never, "12 hours"))
        const sweeping = yield* Effect.fork(
          Effect.repeat(
            Effect.sync(() => swept++),
            Schedule.spaced("1 hour")
          )
        )
        yield* settle
        yield* clock.advance(day)
        expect((yield* Fiber.join(timed))._tag).toBe("None")
        yield* settle
        expect(swept).toBe(2)
        yield* Fiber.interrupt(sweeping)
      })
    ))

  it("can be set as the clock of a whole application", async () => {
    const clock = await Effect.runPromise(SteeredClock.make(undefined))
    await Effect.runPromise(clock.advance(day))
    const now = await Effect.runPromise(Effect.provide(Clock.currentTimeMillis, Layer.setClock(clock.clock)))
    expect(now).toBeGreaterThan(Date.now() + day - 60_000)
  })

  it("keeps its offset over a restart", async () => {
    const folder = freshFolder()
    const first = await Effect.runPromise(SteeredClock.make(folder))
    await Effect.runPromise(first.advance(day))
    await Effect.runPromise(first.advance(5))
    expect(readFileSync(join(folder, "sandbox-clock"), "utf8")).toBe(String(day + 5))
    const second = await Effect.runPromise(SteeredClock.make(folder))
    expect(Math.abs(second.now() - first.now())).toBeLessThan(60_000)
    writeFileSync(join(folder, "sandbox-clock"), "yesterday")
    const broken = await Effect.runPromise(Effect.flip(SteeredClock.make(folder)))
    expect(broken.message).toContain("sandbox-clock")
  })
})
