/** Long work in pieces, beside others on the same thread. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { inSlices, turn } from "../../src/kernel/Pieces.ts"

/** Keeps the thread busy, in milliseconds. */
const work = (millis: number): void => {
  for (const end = performance.now() + millis; performance.now() < end;);
}

describe("work in pieces", () => {
  it.effect("reads each number of a range once, in order", () =>
    Effect.gen(function* () {
      const read = yield* inSlices({ from: 3, to: 10 }, ({ from, to }) => Effect.succeed([from, to]), 3)
      expect(read).toEqual([
        [3, 6],
        [6, 9],
        [9, 10]
      ])
      expect(yield* inSlices({ from: 3, to: 3 }, () => Effect.succeed(1))).toEqual([])
    })
  )

  it.live("leaves others, who need many looks at their sockets, as much time as its pieces take", () =>
    Effect.gen(function* () {
      const pieces: Array<{ readonly began: number; readonly ended: number }> = []
      let going = true
      const other = () => {
        work(2)
        if (going) setImmediate(other)
      }
      setImmediate(other)
      yield* Effect.forEach([1, 2, 3, 4], () =>
        Effect.zipRight(
          turn,
          Effect.sync(() => {
            const began = performance.now()
            work(12)
            pieces.push({ began, ended: performance.now() })
          })
        )
      )
      going = false
      // A busy machine makes a piece longer, and the pause after it too. No pause is longer than 250 ms.
      for (const [i, { began, ended }] of pieces.slice(0, -1).entries())
        expect(pieces[i + 1]!.began - ended).toBeGreaterThanOrEqual(Math.min(250, ended - began) / 2)
    })
  )

  it.live("goes on soon after a piece in which the process was stopped", () =>
    Effect.gen(function* () {
      yield* turn
      // As long as it takes to be no piece of work. The others would be left a quarter of it.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_000)
      const before = performance.now()
      yield* turn
      expect(performance.now() - before).toBeLessThan(600)
    })
  )

  it.live("goes on where nobody else has anything to do, and lets several works take turns", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const long = (name: string) =>
        Effect.forEach([1, 2, 3], () =>
          Effect.zipRight(
            turn,
            Effect.sync(() => {
              order.push(name)
              work(2)
            })
          )
        )
      yield* Effect.all([long("a"), long("b")], { concurrency: "unbounded" })
      expect(order.join("")).toBe("ababab")
    })
  )
})
