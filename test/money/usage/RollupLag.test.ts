/** What readers make of rollups and tails: the same sums however far the rollups are behind, at every moment. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { verify } from "../../../src/app/Checks.ts"
import { pooledMax } from "../../../src/books/ledger/rows/RollupLag.ts"
import { Sums } from "../../../src/money/usage/Sums.ts"
import type { DataPoint } from "../../../src/money/usage/Usage.ts"
import * as Scene from "./Scene.ts"
import { acme, ada, bob, other } from "./Scene.ts"
import { isPostgres } from "../../support/database.ts"

const always = { start: null, end: null }

/** Everything that is read from sums. */
const answers = Effect.gen(function* () {
  const sums = yield* Sums
  const hours = { start: Date.UTC(2026, 1, 28, 22, 30), end: Date.UTC(2026, 2, 2, 1, 15) }
  return {
    summaries: yield* Effect.forEach([always, hours], (window) =>
      Effect.forEach([ada, bob], (account_id) => sums.summary({ caller: { account_id, tenant_id: acme }, window }))
    ),
    rollups: yield* Effect.forEach(
      [{}, { provider: "there" }, { application_id: "" }, { application_id: "app_1", usage_type: "tool" as const }],
      (filter) => sums.rollup({ tenant_id: acme, rollup: "daily", window: always, ...filter })
    ),
    payers: yield* Effect.forEach([ada, bob], (account_id) => sums.byPayer({ account_id, window: always })),
    paid: yield* Effect.forEach([acme, other], (tenant_id) =>
      sums.paid({ tenant_id, rollup: "monthly", window: always, viewer: bob, named: { most: 5 } })
    )
  }
})

/** Calls over three days, of two tenants, of which one pays for the other now and then; what was answered after each. */
const history = Effect.gen(function* () {
  const times = ["2026-02-28T22:59:59Z", "2026-02-28T23:30:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:59:00Z"]
  yield* Scene.now(times[0]!)
  yield* Scene.tenant(acme)
  yield* Scene.tenant(other)
  const answered = []
  for (const [day, time] of times.entries()) {
    yield* Scene.now(time)
    for (let i = 0; i < 6; i++) {
      yield* Scene.call({
        tenant_id: i % 3 === 2 ? other : acme,
        ...(i === 5 && { payer: acme }),
        account_id: i % 2 === 0 ? ada : bob,
        ...(i === 3 && { application_id: "app_1", usage_type: "tool" }),
        model: i < 2 ? "small" : "large",
        provider: day === 1 ? "there" : "here",
        success: i !== 4,
        cost: BigInt(i * 1_000 + day),
        latency_ms: 10 * i,
        units: i
      })
      answered.push(yield* answers)
    }
  }
  return answered
})

const told = (tailMax: number) =>
  Effect.gen(function* () {
    const answered = yield* history
    const sql = yield* SqlClient
    expect(yield* verify).toEqual([])
    const rolled = yield* sql`SELECT * FROM tollgate_usage_by_tenant`
    expect(rolled.length > 0).toBe(tailMax < 100)
    return answered
  }).pipe(Effect.provide(Layer.provideMerge(Sums.layer, Scene.layerOf(tailMax))))

describe("sums", () => {
  it.effect("are the same however long tails become", () =>
    Effect.gen(function* () {
      const folded = yield* told(1)
      for (const tailMax of [2, 3, 7, 1_000]) expect(yield* told(tailMax)).toEqual(folded)
    })
  )

  it.effect("hold the tails of all whom a team pays for, which are short", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme, 10n * usd)
      const sums = yield* Sums
      const sql = yield* SqlClient
      const calls = pooledMax + 5
      for (let i = 0; i < calls; i++) yield* Scene.call({ tenant_id: other, payer: acme, cost: 1n })
      const [watermark] = yield* sql<{ number: number }>`SELECT number FROM tollgate_usage_watermarks`
      expect(watermark!.number).toBe(pooledMax)
      const paid = yield* sums.paid({
        tenant_id: acme,
        rollup: "annual",
        window: always,
        viewer: bob,
        named: [ada, bob]
      })
      const sumsOf = (points: ReadonlyArray<DataPoint>) =>
        points.map(({ total_cost, total_requests }) => [total_requests, total_cost])
      const all = [[calls, BigInt(calls)]]
      expect([sumsOf(paid.viewer), sumsOf(paid.others)]).toEqual([[], all])
      expect([...paid.named].map(([account, points]) => [account, sumsOf(points)])).toEqual([
        [ada, all],
        [bob, []]
      ])
      expect(paid.callers).toEqual([
        {
          account_id: ada,
          totals: { total_requests: calls, total_tokens: expect.any(Number), total_cost: BigInt(calls) }
        }
      ])
      const { sources } = yield* sums.byPayer({ account_id: ada, window: always })
      expect(sources.map((source) => [source.billing_account_id, source.total_requests])).toEqual([
        [billingAccountOf(acme), calls]
      ])
    }).pipe(Effect.provide(Layer.provideMerge(Sums.layer, Scene.layerOf(256))))
  )

  // The plan is SQLite's: PostgreSQL makes one by how many rows there are.
  it.effect.skipIf(isPostgres)("scan no table but what a tail is asked of", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme)
      yield* Scene.call()
      const { statements, tables } = yield* Scene.scanned(answers)
      expect(statements).toBeGreaterThan(0)
      expect(tables).toEqual([])
    }).pipe(Effect.provide(Layer.provideMerge(Sums.layer, Scene.layerOf(256))))
  )
})
