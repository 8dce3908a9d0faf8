/** What upstreams served over all tenants: by day, provider and model, however much of it is kept, and whoever keeps it. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { day } from "../../../src/kernel/Moment.ts"
import { ProviderTotalsIndexer } from "../../../src/books/ledger/totals/ProviderTotalsIndexer.ts"
import { endOf, faultsOf, lastRow } from "../../../src/books/ledger/totals/ProviderTotals.ts"
import { Daily } from "../../../src/money/usage/Daily.ts"
import { isPostgres } from "../../support/database.ts"
import * as Scene from "./Scene.ts"
import { acme, other } from "./Scene.ts"

const first = Date.UTC(2026, 2, 1)
const days = { first, last: first + 3 * day }

/** As a node that has just started. */
const node = Effect.map(Layer.build(Layer.fresh(Layer.merge(Daily.layer, ProviderTotalsIndexer.layer))), (context) => ({
  daily: Context.get(context, Daily),
  adder: Context.get(context, ProviderTotalsIndexer)
}))

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

/** What must be true of the sums whenever nothing is written. */
const holds = Effect.gen(function* () {
  const sql = yield* SqlClient
  expect(yield* faultsOf(sql)).toEqual([])
  return (yield* lastRow(sql)) - (yield* endOf(sql))
})

describe("daily sums", () => {
  it.scoped("are by day, provider and model, over all tenants", () =>
    Effect.gen(function* () {
      yield* history
      const { adder, daily } = yield* node
      const asked = Effect.map(daily.sums(days), (sums) =>
        sums.map(({ charged, failures, model, provider, requests, units, ...sum }) => [
          (sum.day - first) / day,
          provider,
          model,
          requests,
          failures,
          units,
          charged
        ])
      )
      const due = [0, 1, 3].flatMap((at) => [
        [at, "here", "large", 1, 0, 2, 3n],
        [at, "here", "small", 2, 1, 1, 3n],
        [at, "there", "large", 1, 0, 3, 4n]
      ])
      expect(yield* asked).toEqual(due)
      expect(yield* adder.add).toBe(true)
      expect(yield* asked).toEqual(due)
      expect(yield* holds).toBe(0)
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("are those of the days that are asked for", () =>
    Effect.gen(function* () {
      yield* history
      const { adder, daily } = yield* node
      const dayAlone = { first: first + day, last: first + day }
      const before = yield* daily.sums(dayAlone)
      expect(new Set(before.map((sum) => sum.day))).toEqual(new Set([first + day]))
      yield* adder.add
      expect(yield* daily.sums(dayAlone)).toEqual(before)
      expect(yield* daily.sums({ first: first + 2 * day, last: first + 2 * day })).toEqual([])
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("are there after a restart, without their records, and count each record once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* history
      const before = yield* node
      const asked = yield* before.daily.sums(days)
      yield* before.adder.add
      const costs = yield* sql<{
        readonly seq: number
        readonly cost: number
      }>`SELECT seq, cost FROM tollgate_usage_records`
      yield* sql`UPDATE tollgate_usage_records SET cost = 0`
      const after = yield* node
      expect(yield* after.daily.sums(days)).toEqual(asked)
      for (const { cost, seq } of costs) yield* sql`UPDATE tollgate_usage_records SET cost = ${cost} WHERE seq = ${seq}`
      const charged = Effect.map(after.daily.sums(days), (sums) => sums.reduce((all, one) => all + one.charged, 0n))
      const sum = yield* charged
      yield* Scene.call({ cost: 9n })
      expect(yield* charged).toBe(sum + 9n)
      expect(yield* after.adder.add).toBe(true)
      expect(yield* charged).toBe(sum + 9n)
      expect(yield* after.adder.add).toBe(false)
      expect(yield* charged).toBe(sum + 9n)
      expect(yield* holds).toBe(0)
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("are added once where two nodes do it at the same moment", () =>
    Effect.gen(function* () {
      yield* history
      const nodes = [yield* node, yield* node]
      const asked = yield* nodes[0]!.daily.sums(days)
      const added = yield* Effect.all(
        nodes.map(({ adder }) => adder.add),
        { concurrency: "unbounded" }
      )
      expect(added).toContain(true)
      for (const { daily } of nodes) expect(yield* daily.sums(days)).toEqual(asked)
      expect(yield* holds).toBe(0)
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("have a record that came late on its own day", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* history
      const { adder, daily } = yield* node
      yield* adder.add
      yield* Scene.call({ cost: 9n, model: "small" })
      // A node whose clock is three days behind.
      yield* sql`UPDATE tollgate_usage_records SET at = at - ${3 * day} WHERE seq = (SELECT MAX(seq) FROM tollgate_usage_records)`
      const ofFirst = Effect.map(daily.sums({ first, last: first }), (sums) =>
        sums.map(({ charged, model, provider, requests }) => [provider, model, requests, charged])
      )
      const due = [
        ["here", "large", 1, 3n],
        ["here", "small", 3, 12n],
        ["there", "large", 1, 4n]
      ]
      expect(yield* ofFirst).toEqual(due)
      expect(yield* adder.add).toBe(true)
      expect(yield* ofFirst).toEqual(due)
      expect(yield* holds).toBe(0)
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("of a long history are added a part at a time, when there is enough of it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* Scene.now("2026-03-01T00:00:00Z")
      yield* Scene.tenant(acme)
      yield* Scene.call({ cost: 1n })
      const { adder, daily } = yield* node
      const idle = yield* adder.job.turn
      expect(yield* holds).toBe(1)
      yield* sql.unsafe(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 140000)
        INSERT INTO tollgate_usage_records (seq, id, tenant_id, number, at, dimensions, prompt_tokens, completion_tokens, units, cost,
          uncollected, reserved, usage_source, latency_ms, success, error_type, previous, token_details)
        SELECT seq + i, id || i, tenant_id, number + i, at + i * CAST(1000 AS BIGINT), dimensions, 1, 1, 1, i, 2, 0, 'none', 1, 1, NULL, NULL, NULL
        FROM tollgate_usage_records, n`)
      if (isPostgres)
        yield* sql`SELECT setval('tollgate_usage_records_seq', (SELECT MAX(seq) FROM tollgate_usage_records))`
      const asked = yield* daily.sums(days)
      expect(asked.reduce((all, { requests }) => all + requests, 0)).toBe(140_001)
      const busy = yield* adder.job.turn
      const behind = yield* holds
      expect([idle, busy]).toEqual(["2 seconds", "200 millis"])
      expect(behind).toBeGreaterThan(0)
      expect(behind).toBeLessThan(16_384)
      expect(yield* adder.job.turn).toBe("2 seconds")
      expect(yield* holds).toBe(behind)
      expect(yield* daily.sums(days)).toEqual(asked)
      yield* adder.add
      expect(yield* holds).toBe(0)
      expect(yield* daily.sums(days)).toEqual(asked)
    }).pipe(Effect.provide(Scene.layer))
  )
})
