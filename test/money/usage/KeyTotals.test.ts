/** A key's own usage: right at every moment, and read without the records that its totals hold. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as KeyTotals from "../../../src/books/ledger/totals/KeyTotals.ts"
import { KeyTotalsIndexer } from "../../../src/books/ledger/totals/KeyTotalsIndexer.ts"
import { lastRow } from "../../../src/books/ledger/totals/ProviderTotals.ts"
import { day, hour } from "../../../src/kernel/Moment.ts"
import { Sums } from "../../../src/money/usage/Sums.ts"
import type { Window } from "../../../src/money/usage/Window.ts"
import { isPostgres } from "../../support/database.ts"
import * as Scene from "./Scene.ts"
import { acme, ada, bob, other } from "./Scene.ts"

const first = Date.UTC(2026, 1, 28)
const always: Window = { start: null, end: null }
const windows: ReadonlyArray<Window> = [
  always,
  { start: first + day, end: null },
  { start: null, end: first + day },
  { start: first + 23 * hour + 20 * 60_000, end: first + day + hour + 30 * 60_000 },
  { start: first + 23 * hour + 31 * 60_000, end: first + 23 * hour + 59 * 60_000 },
  { start: first + 40 * day, end: null }
]

/** As a node that has just started. */
const node = Effect.map(Layer.build(Layer.fresh(Layer.merge(Sums.layer, KeyTotalsIndexer.layer))), (context) => ({
  of: (application_id: string, window: Window) =>
    Context.get(context, Sums).summary({ caller: { account_id: ada, tenant_id: acme }, window, application_id }),
  add: Context.get(context, KeyTotalsIndexer).add
}))

/** The sums of a key's records, read one by one. */
const due = (application_id: string, { end, start }: Window) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const rows = yield* sql<Record<"cost" | "tokens" | "success" | "latency_ms", number>>`
      SELECT r.cost, r.prompt_tokens + r.completion_tokens AS tokens, r.success, r.latency_ms
      FROM tollgate_usage_records r JOIN tollgate_usage_dimensions d ON d.number = r.dimensions
      WHERE d.application_id = ${application_id} AND r.at >= ${start ?? 0} AND r.at < ${end ?? 8e15}`
    const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + of(row), 0)
    return {
      total_requests: rows.length,
      successful_requests: sum(({ success }) => success),
      total_tokens: sum(({ tokens }) => tokens),
      total_cost: BigInt(sum(({ cost }) => cost)),
      average_latency_ms: rows.length === 0 ? 0 : sum(({ latency_ms }) => latency_ms) / rows.length
    }
  })

const isRight = Effect.gen(function* () {
  const { of } = yield* node
  for (const application_id of ["app_1", "app_2", "app_none"]) {
    for (const window of windows) {
      expect([application_id, window, yield* of(application_id, window)]).toEqual([
        application_id,
        window,
        expect.objectContaining(yield* due(application_id, window))
      ])
    }
  }
  expect(yield* KeyTotals.faultsOf(yield* SqlClient)).toEqual([])
})

const history = Effect.gen(function* () {
  yield* Scene.now("2026-02-28T00:00:00Z")
  yield* Scene.tenant(acme)
  yield* Scene.tenant(other)
})

const calls = (times: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    for (const [at, time] of times.entries()) {
      yield* Scene.now(time)
      for (let i = 0; i < 6; i++) {
        yield* Scene.call({
          tenant_id: i === 5 ? other : acme,
          account_id: i === 4 ? bob : ada,
          application_id: i === 3 ? null : i === 2 ? "app_2" : i === 5 ? "app_3" : "app_1",
          ...(i === 4 && { application_id: "app_4" }),
          model: i === 0 ? "small" : "large",
          success: i !== 1,
          cost: BigInt(1 + i + 10 * at),
          latency_ms: 7 * i
        })
      }
    }
  })

/** Writes `count` records of app_1 by hand, a minute apart, after the records that are there. */
const many = (count: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [row] = yield* sql<{ readonly seq: number; readonly number: number; readonly dimensions: number }>`
      SELECT (SELECT MAX(seq) FROM tollgate_usage_records) AS seq,
        (SELECT MAX(number) FROM tollgate_usage_records WHERE tenant_id = ${acme}) AS number,
        (SELECT MAX(number) FROM tollgate_usage_dimensions WHERE application_id = 'app_1') AS dimensions`
    const { dimensions, number, seq } = row!
    yield* sql.unsafe(`
      WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO tollgate_usage_records (seq, id, tenant_id, number, at, dimensions, prompt_tokens, completion_tokens, units, cost,
        uncollected, reserved, success, error_type, usage_source, latency_ms)
      SELECT ${seq} + i, 'use_many' || i, '${acme}', ${number} + i, ${first + 3 * day} + 60000 * i, ${dimensions}, 2, 3, 5, 7,
        0, 0, 1, NULL, 'provider', 11 FROM n`)
    if (isPostgres)
      yield* sql`SELECT setval('tollgate_usage_records_seq', (SELECT MAX(seq) FROM tollgate_usage_records))`
    yield* Scene.linkRecords
  })

describe("the usage of a key", () => {
  it.scoped("is the sum of its records, however many the totals hold", () =>
    Effect.gen(function* () {
      yield* history
      yield* isRight
      yield* calls(["2026-02-28T22:59:59Z", "2026-02-28T23:30:00Z", "2026-02-28T23:59:00Z"])
      yield* isRight
      const { add } = yield* node
      expect(yield* add).toBe(true)
      yield* isRight
      yield* calls(["2026-03-01T00:00:00Z", "2026-03-01T01:29:59Z"])
      yield* isRight
      expect(yield* add).toBe(true)
      yield* isRight
      expect(yield* add).toBe(false)
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped("is added once by two nodes", () =>
    Effect.gen(function* () {
      yield* history
      yield* calls(["2026-02-28T23:30:00Z", "2026-03-01T00:00:00Z"])
      const nodes = [yield* node, yield* node]
      yield* Effect.all(
        nodes.map(({ add }) => add),
        { concurrency: "unbounded" }
      )
      yield* isRight
    }).pipe(Effect.provide(Scene.layer))
  )

  it.scoped(
    "of 210,000 calls is read from totals of days and from the newest records alone",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* history
        yield* calls(["2026-02-28T23:30:00Z"])
        yield* many(210_000)
        const { add, of } = yield* node
        const before = yield* of("app_1", always)
        expect(before.total_requests).toBe(210_002)
        while (yield* add);
        expect((yield* lastRow(sql)) - (yield* KeyTotals.endOf(sql))).toBe(0)
        expect(yield* of("app_1", always)).toEqual(before)
        // The answer does not come from the records: there is nothing left in them.
        yield* sql`UPDATE tollgate_usage_records SET cost = 0, prompt_tokens = 0, completion_tokens = 0, success = 0, latency_ms = 0`
        expect(yield* of("app_1", always)).toEqual(before)
        const [read] = yield* sql<{ readonly rows: number }>`SELECT COUNT(*) AS rows FROM tollgate_usage_by_key
          WHERE application_id = 'app_1' AND grain = ${day}`
        // 146 days of minutes, and the two models of the first day.
        expect(read).toEqual({ rows: 148 })
        // A record after the totals is one more.
        yield* Scene.now("2026-09-01T00:00:00Z")
        yield* Scene.call({ application_id: "app_1", cost: 5n })
        const after = yield* of("app_1", always)
        expect([after.total_requests, after.total_cost]).toEqual([210_003, before.total_cost + 5n])
      }).pipe(Effect.provide(Scene.layerOf(256))),
    120_000
  )
})
