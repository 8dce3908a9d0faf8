/** Series and filters over many records: the same as from the records themselves, however many tallies are written. */
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { day, hour } from "../../../src/kernel/Moment.ts"
import { runSize, sizes } from "../../../src/books/ledger/totals/SortedIndex.ts"
import { TotalsIndexer } from "../../../src/books/ledger/totals/TotalsIndexer.ts"
import { allRuns, faultsOf, overlappingRuns, written } from "../../../src/books/ledger/totals/Totals.ts"
import type { Filter } from "../../../src/money/usage/Filtered.ts"
import { Records } from "../../../src/money/usage/Records.ts"
import { Series } from "../../../src/money/usage/Series.ts"
import { Sums } from "../../../src/money/usage/Sums.ts"
import { directions, seriesBy } from "../../../src/money/usage/Usage.ts"
import type { Direction, RecordPage, SeriesBy } from "../../../src/money/usage/Usage.ts"
import { isPostgres } from "../../support/database.ts"
import * as Scene from "./Scene.ts"
import { acme, ada, bob, other } from "./Scene.ts"

const layer = Layer.mergeAll(Records.layer, Series.layer, Sums.layer, TotalsIndexer.layer).pipe(
  Layer.provideMerge(Scene.layer)
)

interface Kind {
  readonly model: string
  readonly account: string
  readonly application: string
  readonly payer: string
}

const kind = (model: string, account: string, application: string, payer: string): Kind => ({
  model,
  account,
  application,
  payer
})

/** By the number of their dimensions, from 1 on. */
const kinds: ReadonlyArray<Kind> = [
  kind("small", ada, "", acme),
  kind("small", bob, "app_1", acme),
  kind("large", ada, "app_1", other),
  kind("large", bob, "", acme),
  kind("large", bob, "app_2", acme),
  kind("early", ada, "", acme),
  kind("rare", ada, "app_1", acme)
]

/** Few records have the tag of `rare`, and runs that have the tag of `early` have it in most records. */
const tagOf = (model: string): string => (model === "rare" || model === "early" ? `${model}=yes` : "")

const kindOf = (i: number): number => (i % 5000 === 7 ? 7 : i < 3000 ? 6 : 1 + (i % 5))
const isGood = (i: number): boolean => i % 11 !== 0
/** Some are beyond what a double holds. */
const costOf = (i: number): bigint => (i % 4000 === 0 ? 9007199254740992n + BigInt(i) : BigInt((i * 7919) % 4001))
/** One every seven minutes. */
const atOf = (i: number): number => i * 420_000

const add = (count: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    for (const [i, { account, application, model, payer }] of kinds.entries()) {
      yield* sql`INSERT INTO tollgate_usage_dimensions (number, account_id, tenant_id, application_id, usage_type, endpoint, model,
          provider, price, billing_account_id, billing_source_tenant_id, billing_source_kind, billing_source_why, tags)
        VALUES (${i + 1}, ${account}, ${acme}, ${application}, 'tool', 'search', ${model}, 'here', '', ${`bil_${payer.slice(4)}`}, ${payer},
          'own', 'own', ${tagOf(model)}) ON CONFLICT DO NOTHING`
    }
    yield* sql.unsafe(`WITH RECURSIVE last (n) AS (SELECT COALESCE(MAX(number), 0) FROM tollgate_usage_records),
        n (i) AS (SELECT n + 1 FROM last UNION ALL SELECT i + 1 FROM n, last WHERE i < last.n + ${count})
      INSERT INTO tollgate_usage_records (seq, id, tenant_id, number, at, dimensions, prompt_tokens, completion_tokens, units, cost,
        uncollected, reserved, usage_source, latency_ms, success, error_type, previous, token_details)
      SELECT 60000 + 2 * i, 'use_' || i, '${acme}', i, i * CAST(420000 AS BIGINT),
        CASE WHEN i % 5000 = 7 THEN 7 WHEN i < 3000 THEN 6 ELSE 1 + i % 5 END, 2, 1, i,
        CASE WHEN i % 4000 = 0 THEN 9007199254740992 + i ELSE i * 7919 % 4001 END, 0, 0, 'none', 1,
        CASE WHEN i % 11 = 0 THEN 0 ELSE 1 END, NULL, NULL, NULL
      FROM n`)
    yield* Scene.linkRecords
  })

const numbersBy = (filter: Filter, start: number, end: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, i) => i + 1).filter((i) => {
    const { account, application, model, payer } = kinds[kindOf(i) - 1]!
    return (
      atOf(i) >= start &&
      atOf(i) < end &&
      (filter.model ?? model) === model &&
      (filter.account_id ?? account) === account &&
      (filter.application_id ?? application) === application &&
      (filter.billing_source_tenant_id ?? payer) === payer &&
      (filter.success ?? isGood(i)) === isGood(i)
    )
  })

/** The numbers that pages show, which are the units of the records, and what they say of all. */
const shown = (asked: {
  filter: Filter
  direction: Direction
  start: number
  end: number
  page: number
  pages: number
}) =>
  Effect.gen(function* () {
    const records = yield* Records
    const { direction, end, filter, page, pages, start } = asked
    const numbers: Array<number> = []
    let [cursor, total]: [string | undefined, number] = [undefined, -1]
    for (let i = 0; i < pages; i++) {
      const found: RecordPage = yield* records.page({
        tenant_id: acme,
        window: { start, end },
        direction,
        page,
        per_page: 50,
        ...(cursor === undefined ? { filter } : { cursor })
      })
      numbers.push(...found.records.map(({ units }) => units))
      total = found.total_records
      if (found.next_cursor === null) break
      cursor = found.next_cursor
    }
    return { numbers, total }
  })

const filters: ReadonlyArray<Filter> = [
  { model: "rare" },
  { model: "early" },
  { model: "large", success: false },
  { application_id: "" },
  { application_id: "app_1", account_id: ada },
  { billing_source_tenant_id: other, success: true },
  { success: false },
  { model: "unknown" },
  { model: "rare", account_id: bob }
]

const checkFilters = (count: number, wanted: ReadonlyArray<Filter>) =>
  Effect.gen(function* () {
    const windows = [
      [0, atOf(count + 1)],
      [atOf(runSize - 5), atOf(count - runSize)],
      [atOf(500), atOf(900)]
    ] as const
    for (const filter of wanted) {
      for (const [start, end] of windows) {
        const all = numbersBy(filter, start, end, count)
        for (const direction of directions) {
          const ordered = direction === "asc" ? all : all.toReversed()
          for (const page of [1, 40]) {
            const { numbers, total } = yield* shown({ filter, direction, start, end, page, pages: 3 })
            expect(numbers).toEqual(ordered.slice((page - 1) * 50, (page + 2) * 50))
            expect(total).toBe(all.length)
          }
        }
      }
    }
  })

const keyOf = (by: SeriesBy, i: number): string => {
  const one = kinds[kindOf(i) - 1]!
  if (by === "endpoint") return "search"
  if (by === "provider") return "here"
  return by in one ? one[by as keyof Kind] : ""
}

const checkSeries = (count: number, from: number, to: number) =>
  Effect.gen(function* () {
    const series = yield* Series
    const [start, end] = [Math.floor(atOf(from) / hour) * hour, Math.ceil(atOf(to) / hour) * hour]
    const numbers = numbersBy({}, start, end, count)
    for (const by of seriesBy) {
      const found = yield* series.of({ tenant_id: acme, grain: "hour", by, start, end, top: 2 })
      const totals = new Map<string, bigint>()
      for (const i of numbers) totals.set(keyOf(by, i), (totals.get(keyOf(by, i)) ?? 0n) + costOf(i))
      const named = [...totals].sort(([, a], [, b]) => (a > b ? -1 : 1)).map(([key]) => key)
      expect(found.series.map(({ key }) => key)).toEqual(named.length > 2 ? [...named.slice(0, 2), null] : named)
      const cost = found.series.map((one) => Array.from(one.cost, () => 0n))
      const failures = found.series.map((one) => Array.from(one.cost, () => 0))
      for (const i of numbers) {
        const place = Math.min(named.indexOf(keyOf(by, i)), 2)
        const bucket = Math.floor((atOf(i) - start) / hour)
        cost[place]![bucket]! += costOf(i)
        failures[place]![bucket]! += isGood(i) ? 0 : 1
      }
      expect(found.series.map((one) => Array.from(one.cost))).toEqual(cost)
      expect(found.series.map((one) => Array.from(one.failures))).toEqual(failures)
      expect(found.total.requests).toBe(numbers.length)
      expect(found.total.tokens).toBe(3 * numbers.length)
    }
  })

const checkRollup = (count: number) =>
  Effect.gen(function* () {
    const sums = yield* Sums
    for (const [from, to] of [
      [1, count + 1],
      [5 * runSize + 3, count - runSize]
    ] as const)
      for (const kind of [6, 7]) {
        const [start, end] = [Math.floor(atOf(from) / day) * day, Math.ceil(atOf(to) / day) * day]
        const labels = { tag: `${kinds[kind - 1]!.model}=yes` }
        const asked = { tenant_id: acme, rollup: "daily", window: { start, end }, labels } as const
        const { data_points } = yield* sums.rollup(asked)
        const days = new Map<number, { requests: number; cost: bigint }>()
        for (let i = 1; i <= count; i++) {
          if (kindOf(i) !== kind || atOf(i) < start || atOf(i) >= end) continue
          const { cost, requests } = days.get(Math.floor(atOf(i) / day)) ?? { requests: 0, cost: 0n }
          days.set(Math.floor(atOf(i) / day), { requests: requests + 1, cost: cost + costOf(i) })
        }
        if (kind === 7 || from === 1) expect(days.size).toBeGreaterThan(1)
        expect(
          data_points.map(({ timestamp, total_cost, total_requests }) => [timestamp, total_requests, total_cost])
        ).toEqual([...days].map(([at, { cost, requests }]) => [at * day, requests, cost]))
      }
  })

describe("Totals", () => {
  it("are read of the runs that a range touches, and records of what no run holds", () => {
    const [fine, middle] = [sizes[0]!, sizes[1]!]
    expect(overlappingRuns({ from: 1, to: 1 }, [9, 0])).toMatchObject({ runs: [] })
    expect(overlappingRuns({ from: 5, to: fine + 5 }, [1, 0])).toEqual({
      runs: [{ level: 0, run: 0, isWhole: false }],
      rest: { from: fine + 1, to: fine + 5 }
    })
    expect(overlappingRuns({ from: 1, to: middle + 2 }, [17, 1])).toEqual({
      runs: [
        { level: 1, run: 0, isWhole: true },
        { level: 0, run: 16, isWhole: false }
      ],
      rest: { from: middle + fine + 1, to: middle + 2 }
    })
  })

  it.effect("give the same series and the same pages as the records", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const count = sizes[1]! + 2 * runSize + 100
      yield* add(count)
      const { write } = yield* TotalsIndexer
      // Without one, with some, with all.
      yield* checkSeries(count, 1, 2000)
      expect(yield* write(7)).toBe(7)
      yield* checkSeries(count, 5 * runSize, 9 * runSize)
      yield* checkFilters(count, [{ model: "large", success: false }])
      expect(yield* write(100)).toBe(12)
      expect(yield* written(sql, acme)).toEqual([18, 1])
      expect(yield* write(100)).toBe(0)
      yield* checkSeries(count, 1, count)
      yield* checkSeries(count, 3 * runSize + 17, count - 2 * runSize)
      yield* checkFilters(count, filters)
      yield* checkRollup(count)
    }).pipe(Effect.provide(layer))
  )

  it.effect("are compared with their records", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* add(sizes[1]!)
      yield* Effect.flatMap(TotalsIndexer, ({ write }) => write(100))
      const found = Effect.gen(function* () {
        const runs = yield* allRuns(sql)
        return (yield* Effect.forEach(runs, (run) => faultsOf(sql, run.tenant, run))).flat().map(({ id }) => id)
      })
      expect(yield* found).toEqual([])
      yield* sql`UPDATE tollgate_usage_records SET success = 1 - success WHERE number = ${runSize + 1}`
      expect(yield* found).toEqual(["totals", "kinds", "sums"].map((part) => `${part} of run 1 of level 0 of ${acme}`))
      yield* sql`UPDATE tollgate_usage_records SET success = 1 - success WHERE number = ${runSize + 1}`
      yield* sql`DELETE FROM tollgate_usage_tallies WHERE level = 0 AND run = 3`
      expect((yield* found).slice(0, 3)).toEqual(
        ["totals", "kinds", "sums"].map((part) => `${part} of run 3 of level 0 of ${acme}`)
      )
    }).pipe(Effect.provide(layer))
  )

  // The plan is SQLite's: PostgreSQL makes one by how many rows there are.
  it.effect.skipIf(isPostgres)("are found by index", () =>
    Effect.gen(function* () {
      yield* add(3 * runSize + 10)
      yield* Effect.flatMap(TotalsIndexer, ({ write }) => write(100))
      const end = atOf(3 * runSize + 11)
      const asked = { filter: { model: "large" }, direction: "desc", start: 0, end, page: 1, pages: 2 } as const
      const pages = yield* Scene.scanned(shown(asked))
      expect(pages.tables).toEqual([])
      const series = yield* Effect.flatMap(Series, (series) =>
        Scene.scanned(series.of({ tenant_id: acme, grain: "hour", by: "account", start: 0, end: 24 * hour, top: 8 }))
      )
      expect(series.tables).toEqual([])
    }).pipe(Effect.provide(layer))
  )
})
