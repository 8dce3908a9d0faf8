/** What upstreams served over all tenants: by day, provider and model, whether somebody asked before or not. */
import { describe, expect, it } from "@effect/vitest"
import { Context, Duration, Effect, Layer } from "effect"
import { day } from "../../src/kernel/Moment.ts"
import { Daily } from "../../src/usage/Daily.ts"
import * as Scene from "./Scene.ts"
import { acme, other } from "./Scene.ts"

const first = Date.UTC(2026, 2, 1)
const days = { first, last: first + 3 * day }

/** As a node that has just started. */
const node = Effect.map(Layer.build(Layer.fresh(Daily.layer)), Context.get(Daily))

const history = Effect.gen(function* () {
  yield* Scene.now("2026-03-01T00:00:00Z")
  yield* Scene.tenant(acme)
  yield* Scene.tenant(other)
  for (const time of ["2026-03-01T00:00:00Z", "2026-03-02T23:59:59Z", "2026-03-04T12:00:00Z"]) {
    yield* Scene.now(time)
    for (let i = 0; i < 4; i++) {
      yield* Scene.call({
        tenant_id: i % 2 === 0 ? acme : other,
        model: i < 2 ? "small" : "large",
        provider: i === 3 ? "there" : "here",
        success: i !== 1,
        cost: BigInt(i + 1),
        units: i
      })
    }
  }
})

describe("daily sums", () => {
  it.scoped("are by day, provider and model, over all tenants", () =>
    Effect.gen(function* () {
      yield* history
      const sums = yield* Effect.flatMap(node, (daily) => daily.sums(days))
      expect(
        sums.map(({ charged, failures, model, provider, requests, units, ...sum }) => [
          (sum.day - first) / day,
          provider,
          model,
          requests,
          failures,
          units,
          charged
        ])
      ).toEqual(
        [0, 1, 3].flatMap((at) => [
          [at, "here", "large", 1, 0, 2, 3n],
          [at, "here", "small", 2, 1, 1, 3n],
          [at, "there", "large", 1, 0, 3, 4n]
        ])
      )
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("of days that are over are read before somebody asks, and are the same then", () =>
    Effect.gen(function* () {
      yield* history
      const asked = yield* Effect.flatMap(node, (daily) => daily.sums(days))
      const ahead = yield* node
      let turns = 0
      for (let pause = 0; pause < 60_000; turns++) pause = Duration.toMillis((yield* ahead.job.turn)!)
      // Three days are over, and before the first record there may be one more by another node's clock.
      expect(turns).toBeLessThanOrEqual(5)
      const over = { first, last: first + 2 * day }
      const { statements } = yield* Scene.scanned(ahead.sums(over))
      expect(statements).toBe(0)
      expect(yield* ahead.sums(days)).toEqual(asked)
      yield* Scene.call({ cost: 9n })
      const [before, after] = [asked, yield* ahead.sums(days)].map((sums) =>
        sums.reduce((all, one) => all + one.charged, 0n)
      )
      expect(after! - before!).toBe(9n)
    }).pipe(Effect.provide(Scene.layer))
  )
})
