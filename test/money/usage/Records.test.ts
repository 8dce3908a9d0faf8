import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema, TestClock } from "effect"
import type { TenantId } from "../../../src/kernel/Ids.ts"
import { hour, parse, toIso } from "../../../src/kernel/Moment.ts"
import { usd } from "../../../src/kernel/Money.ts"
import { recordsOf } from "../../../src/money/usage/Query.ts"
import { depthMax, Records } from "../../../src/money/usage/Records.ts"
import { RecordPage, sorts } from "../../../src/money/usage/Usage.ts"
import type { RecordsQuery, UsageRecord } from "../../../src/money/usage/Usage.ts"
import * as Scene from "./Scene.ts"
import { acme, ada, bob, other } from "./Scene.ts"
import { isPostgres } from "../../support/database.ts"

const layer = Records.layer.pipe(Layer.provideMerge(Scene.layer))

const page = (query: Partial<RecordsQuery> = {}, tenant_id = acme) =>
  Effect.flatMap(Records, (records) =>
    Effect.flatMap(recordsOf({ page: 1, per_page: 50, ...query }), (asked) => records.page({ tenant_id, ...asked }))
  )

const units = (records: ReadonlyArray<UsageRecord>) => records.map((record) => record.units)

/** What is shown page by page, each by the cursor of the one before; `between` happens after each. */
const walk = (query: Partial<RecordsQuery>, between: Effect.Effect<unknown, unknown, never> = Effect.void) =>
  Effect.gen(function* () {
    const seen: Array<UsageRecord> = []
    let cursor: string | null | undefined
    for (let turns = 0; cursor !== null && turns < 100; turns++) {
      const { next_cursor, page: number, records } = yield* page(cursor === undefined ? query : { ...query, cursor })
      expect(number).toBe(turns + 1)
      seen.push(...records)
      cursor = next_cursor
      yield* between
    }
    return seen
  })

const refused = (query: Partial<RecordsQuery>) =>
  Effect.map(Effect.flip(page(query)), ({ body, status }) => ({ status, ...body }))

/** So many records of a tenant, whose costs are in no order. */
const many = (tenant: TenantId, count: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [first] = yield* sql<{ seq: number }>`SELECT COALESCE(MAX(seq), 60000) AS seq FROM tollgate_usage_records`
    const { seq } = first!
    yield* sql`INSERT INTO tollgate_usage_dimensions
      VALUES (${seq}, ${ada}, ${tenant}, '', 'tool', 'x', 'x', 'x', '', ${`bil_${tenant}`}, ${tenant}, 'own', 'own', '', '', '')`
    yield* sql.unsafe(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO tollgate_usage_records (seq, id, tenant_id, number, at, dimensions, prompt_tokens, completion_tokens, units, cost,
        uncollected, reserved, usage_source, latency_ms, success)
      SELECT ${seq} + i, 'use_' || (${seq} + i), '${tenant}', i, i, ${seq}, 0, 0, i,
        i * 7919 % 4001, 0, 0, 'none', 0, 1 FROM n`)
    yield* Scene.linkRecords
  })

describe("Records", () => {
  it.effect("shows what a call left", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:20:30.042Z")
      yield* Scene.tenant(acme)
      yield* Scene.tenant(other)
      const id = yield* Scene.call({ account_id: bob, payer: other, cost: 42n, units: 1.5, latency_ms: 12 })
      const found = yield* page()
      expect(Schema.encodeSync(RecordPage)(found)).toEqual({
        page: 1,
        per_page: 50,
        total_pages: 1,
        total_records: 1,
        next_cursor: null,
        records: [
          {
            id,
            timestamp: "2026-03-01T10:20:30.042Z",
            account_id: bob,
            tenant_id: acme,
            usage_type: "inference",
            model: "small",
            provider: "here",
            prompt_tokens: 10,
            completion_tokens: 5,
            total_tokens: 15,
            units: 1.5,
            cost: 0.000000042,
            latency: 12,
            success: true,
            endpoint: "chat/completions",
            billing_account_id: "bil_other",
            billing_source_tenant_id: other,
            billing_source_kind: "team"
          }
        ]
      })
      expect((yield* page({}, other)).total_records).toBe(0)
    }).pipe(Effect.provide(layer))
  )

  it.effect("says why a call failed, what could not be paid, and whose count it is", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme, usd)
      yield* Scene.call({ cost: 0n, success: false, error_type: "upstream_error", usage_source: "none" })
      yield* Scene.settle(yield* Scene.reserve({ cost: usd }), { cost: 3n * usd, usage_source: "estimated" })
      const { records } = yield* page()
      expect(records).toMatchObject([
        { cost: usd, uncollected: 2n * usd, usage_source: "estimated", success: true },
        { cost: 0n, error_type: "upstream_error", success: false }
      ])
      expect(
        records.map((record) => ["error_type", "uncollected", "usage_source"].filter((key) => key in record))
      ).toEqual([["uncollected", "usage_source"], ["error_type"]])
    }).pipe(Effect.provide(layer))
  )

  it.effect("pages by number, in either direction", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme)
      yield* Scene.tenant(other)
      for (let i = 1; i <= 7; i++) {
        yield* Scene.call({ units: i })
        yield* Scene.call({ units: -i, tenant_id: other })
      }
      const shown = (query: Partial<RecordsQuery>) =>
        Effect.map(page({ per_page: 3, ...query }), (found) => [
          units(found.records),
          found.total_records,
          found.total_pages
        ])
      expect(yield* shown({ page: 1 })).toEqual([[7, 6, 5], 7, 3])
      expect(yield* shown({ page: 3 })).toEqual([[1], 7, 3])
      expect(yield* shown({ page: 4 })).toEqual([[], 7, 3])
      expect(yield* shown({ page: 999_999_999_999_999 })).toEqual([[], 7, 3])
      expect(yield* shown({ page: 1, direction: "asc" })).toEqual([[1, 2, 3], 7, 3])
      expect(yield* shown({ page: 3, direction: "asc" })).toEqual([[7], 7, 3])
      expect(yield* shown({ page: 999_999_999_999_999, direction: "asc" })).toEqual([[], 7, 3])
      // A page by number can be gone on from by cursor.
      const { next_cursor } = yield* page({ per_page: 3, page: 2 })
      expect(yield* shown({ cursor: next_cursor! })).toEqual([[1], 7, 3])
    }).pipe(Effect.provide(layer))
  )

  it.effect.each(sorts.flatMap((sort) => ["asc", "desc"].map((direction) => ({ sort, direction }))))(
    "a walk by $sort, $direction, neither repeats nor skips while calls come in",
    (order) =>
      Effect.gen(function* () {
        yield* Scene.now("2026-03-01T10:00:00Z")
        yield* Scene.tenant(acme)
        // Few values, so that many are equal.
        let made = 0
        const another = Effect.suspend(() => {
          const value = (made++ * 7) % 5
          return Scene.call({ units: made, cost: BigInt(value), completion_tokens: value, latency_ms: value })
        })
        const context = yield* Effect.context<Effect.Effect.Context<typeof another>>()
        yield* Effect.repeatN(another, 19)
        yield* Effect.repeatN(another, 9)
        const seen = yield* walk({ ...order, per_page: 4 }, Effect.provide(another, context))
        expect(new Set(units(seen)).size).toBe(seen.length)
        const first = seen.filter((record) => record.units <= 30)
        expect(units(first).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, i) => i + 1))
        const key = (record: UsageRecord) =>
          order.sort === "timestamp" ? 0 : order.sort === "cost" ? Number(record.cost) : record[order.sort]
        const sign = order.direction === "asc" ? 1 : -1
        expect(units(seen)).toEqual(units(seen.toSorted((a, b) => sign * (key(a) - key(b) || a.units - b.units))))
      }).pipe(Effect.provide(layer))
  )

  it.effect("a window is the calls from its start to before its end, also across offsets", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T00:00:00Z")
      yield* Scene.tenant(acme)
      const times: Array<number> = []
      for (let i = 0; i < 150; i++) {
        // Some at the same instant.
        yield* TestClock.adjust(i % 3 === 0 ? 0 : hour * (i % 5))
        times.push(yield* TestClock.currentTimeMillis)
        yield* Scene.call({ units: i })
      }
      const instants = [...new Set(times)].flatMap((at) => [at - 1, at, at + 1])
      for (let i = 0; i < 150; i++) {
        const start = instants[(i * 31) % instants.length]!
        const end = instants[(i * 17 + 40) % instants.length]!
        const within = times.flatMap((at, number) => (at >= start && at < end ? [number] : []))
        const dates = { start_date: toIso(start), end_date: toIso(end) }
        const found = yield* page({ ...dates, per_page: 200, direction: "asc" })
        expect(units(found.records)).toEqual(within)
        expect(found.total_records).toBe(within.length)
        const second = yield* page({ ...dates, page: 2, per_page: 7 })
        expect(units(second.records)).toEqual(within.toReversed().slice(7, 14))
        const byUnits = yield* page({ ...dates, page: 2, per_page: 7, sort: "latency" })
        expect(units(byUnits.records)).toEqual(units(second.records))
      }
      expect((yield* page({ start_date: "2026-03-02" })).total_records).toBe(
        times.filter((at) => at >= parse("2026-03-02")!).length
      )
      expect((yield* page({ end_date: "2026-03-02" })).total_records).toBe(
        times.filter((at) => at < parse("2026-03-03")!).length
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("a cursor carries its window and order", () =>
    Effect.gen(function* () {
      yield* Scene.now("2026-03-01T10:00:00Z")
      yield* Scene.tenant(acme)
      for (let i = 1; i <= 5; i++) yield* Scene.call({ units: i, cost: BigInt(10 - i) })
      yield* Scene.now("2026-03-02T10:00:00Z")
      yield* Scene.call({ units: 6, cost: 1n })
      const first = yield* page({ end_date: "2026-03-01", sort: "cost", direction: "asc", per_page: 2 })
      expect(units(first.records)).toEqual([5, 4])
      expect(units((yield* page({ cursor: first.next_cursor! })).records)).toEqual([3, 2, 1])
    }).pipe(Effect.provide(layer))
  )

  it.effect("orders by value over more records than one reading takes", () =>
    Effect.gen(function* () {
      const count = 20_000
      yield* many(acme, count)
      const all = Array.from({ length: count }, (_, i) => i + 1).sort(
        (a, b) => ((b * 7919) % 4001) - ((a * 7919) % 4001) || b - a
      )
      const at = (number: number) =>
        Effect.map(page({ sort: "cost", page: number, per_page: 200 }), ({ records }) => units(records))
      expect(yield* at(1)).toEqual(all.slice(0, 200))
      expect(yield* at(60)).toEqual(all.slice(59 * 200, 60 * 200))
      expect(yield* at(100)).toEqual(all.slice(-200))
      expect((yield* page({ sort: "cost", page: 100, per_page: 200 })).next_cursor).toBe(null)
    }).pipe(Effect.provide(layer))
  )

  it.effect("lets a tenant with few records by while another's many are sorted, and one with many take turns", () =>
    Effect.gen(function* () {
      yield* many(acme, 30_000)
      yield* many(other, 6_000)
      const records = yield* Records
      const over: Array<string> = []
      const walk = (tenant: TenantId, name: string) =>
        Effect.map(
          records.page({
            tenant_id: tenant,
            sort: "cost",
            window: { start: null, end: null },
            page: 1,
            per_page: 50
          }),
          () => void over.push(name)
        )
      yield* Effect.all([walk(acme, "first"), walk(acme, "second"), walk(other, "other")], { concurrency: "unbounded" })
      expect(over).toEqual(["other", "first", "second"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses pages by number of such an order where they cost too much, and names the cursor", () =>
    Effect.gen(function* () {
      yield* many(acme, depthMax + 100)
      expect(yield* refused({ sort: "cost", page: depthMax / 50 + 1 })).toMatchObject({
        code: "invalid_request",
        details: {
          field: "page",
          rule: "must be within the first 20000 records when sorted by cost; continue with the cursor beyond that"
        }
      })
      expect((yield* page({ sort: "cost", page: depthMax / 50 })).records).toHaveLength(50)
      expect((yield* page({ sort: "cost", page: depthMax / 50 + 3 })).records).toEqual([])
      expect((yield* page({ sort: "timestamp", page: depthMax / 50 + 1 })).records).toHaveLength(50)
    }).pipe(Effect.provide(layer))
  )

  // The plan is SQLite's: PostgreSQL makes one by how many rows there are.
  it.effect.skipIf(isPostgres)("finds its rows by index", () =>
    Effect.gen(function* () {
      yield* Scene.tenant(acme)
      yield* Scene.call()
      const dates = { start_date: "1969-03-01", end_date: "2026-03-02" }
      const { statements, tables } = yield* Scene.scanned(
        Effect.all([page(), page({ ...dates, direction: "asc" }), page({ ...dates, sort: "cost" })])
      )
      expect(statements).toBeGreaterThan(4)
      expect(tables).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses what it cannot read", () =>
    Effect.gen(function* () {
      const invalid = (field: string, rule: string) => ({
        status: 400,
        error: "the request is not valid",
        code: "invalid_request",
        details: { field, rule }
      })
      expect(yield* refused({ sort: "model" })).toEqual(
        invalid("sort", "must be one of timestamp, cost, total_tokens, latency")
      )
      expect(yield* refused({ direction: "up" })).toEqual(invalid("direction", "must be asc or desc"))
      expect(yield* refused({ start_date: "yesterday" })).toEqual(
        invalid("start_date", "must be an RFC 3339 date and time")
      )
      expect(yield* refused({ end_date: "2026-02-30" })).toEqual(
        invalid("end_date", "must be an RFC 3339 date and time")
      )
      for (const sort of ["cost", "total_tokens", "latency", "timestamp"] as const) {
        for (const far of [2, depthMax / 50 + 1, 999_999_999_999_999]) {
          expect((yield* page({ sort, page: far })).records).toEqual([])
        }
      }
      const rule = "must be the next_cursor of an earlier page"
      for (const text of ["", "2", "%%%", btoa("{}"), btoa('{"sort":"model"}'), btoa("[1")]) {
        expect(yield* refused({ cursor: text })).toEqual(invalid("cursor", rule))
      }
    }).pipe(Effect.provide(layer))
  )
})
