import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { cover, due, fanOut, faultsOf, runSize, sizes, written } from "../../../src/books/ledger/totals/SortedIndex.ts"
import { SortedIndexer } from "../../../src/books/ledger/totals/SortedIndexer.ts"
import { Records } from "../../../src/money/usage/Records.ts"
import { directions, sorts } from "../../../src/money/usage/Usage.ts"
import type { Direction, Sort, UsageRecord } from "../../../src/money/usage/Usage.ts"
import * as Scene from "../../money/usage/Scene.ts"
import { acme, ada } from "../../money/usage/Scene.ts"
import { describePostgres, isPostgres } from "../../support/database.ts"

const layer = Layer.merge(Records.layer, SortedIndexer.layer).pipe(Layer.provideMerge(Scene.layer))

/** Adds so many records to acme's, one a millisecond, with few values and a few that no double holds. */
const add = (count: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`INSERT INTO tollgate_usage_dimensions
      VALUES (1, ${ada}, ${acme}, '', 'tool', 'x', 'x', 'x', '', 'bil_acme', ${acme}, 'own', 'own', '', '', '') ON CONFLICT DO NOTHING`
    yield* sql.unsafe(`WITH RECURSIVE last (n) AS (SELECT COALESCE(MAX(number), 0) FROM tollgate_usage_records),
        n (i) AS (SELECT n + 1 FROM last UNION ALL SELECT i + 1 FROM n, last WHERE i < last.n + ${count})
      INSERT INTO tollgate_usage_records (seq, id, tenant_id, number, at, dimensions, prompt_tokens, completion_tokens, units, cost,
        uncollected, reserved, usage_source, latency_ms, success)
      SELECT 60000 + 2 * i, 'use_' || i, '${acme}', i, i, 1, i * 31 % 7, i * 17 % 5, i,
        CASE WHEN i % 1000 = 0 THEN 9007199254740992 + i * 7919 % 3 ELSE i * 7919 % 4001 END, 0, 0, 'none', i * 7919 % 50, 1
      FROM n`)
    yield* Scene.linkRecords
  })

/** The numbers that these pages show: they are the units of the records. */
const shown = (asked: { sort: Sort; direction: Direction; start: number; end: number; page: number; pages: number }) =>
  Effect.gen(function* () {
    const records = yield* Records
    const { direction, end, page, pages, sort, start } = asked
    const numbers: Array<number> = []
    let cursor: string | undefined
    for (let i = 0; i < pages; i++) {
      const window = { start, end }
      const found = yield* records.page({ tenant_id: acme, window, sort, direction, page, per_page: 200, cursor })
      numbers.push(...found.records.map((record: UsageRecord) => record.units))
      if (found.next_cursor === null) break
      cursor = found.next_cursor
    }
    return numbers
  })

const valueOf = (sort: Sort, i: number): bigint => {
  if (sort === "timestamp") return BigInt(i)
  if (sort === "total_tokens") return BigInt(((i * 31) % 7) + ((i * 17) % 5))
  if (sort === "latency") return BigInt((i * 7919) % 50)
  return i % 1000 === 0 ? 9007199254740992n + BigInt((i * 7919) % 3) : BigInt((i * 7919) % 4001)
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)

const runs = Effect.flatMap(SqlClient, (sql) => written(sql, acme))

describe("Sorted runs", () => {
  it("cover a range by the fewest runs, and name what is left", () => {
    const [fine, middle] = [sizes[0]!, sizes[1]!]
    expect(cover({ from: 1, to: 1 }, [9, 9, 9])).toEqual({ runs: [], rest: [] })
    expect(cover({ from: 1, to: middle + fine + 5 }, [fanOut + 1, 1, 0])).toEqual({
      runs: [
        { level: 1, run: 0 },
        { level: 0, run: fanOut }
      ],
      rest: [{ from: middle + fine + 1, to: middle + fine + 5 }]
    })
    // A window that begins and ends within runs; and what is there, but not written yet.
    expect(cover({ from: 2, to: middle + 2 }, [3, 0, 0])).toEqual({
      runs: [
        { level: 0, run: 1 },
        { level: 0, run: 2 }
      ],
      rest: [
        { from: 2, to: fine + 1 },
        { from: 3 * fine + 1, to: middle + 2 }
      ]
    })
  })

  it("are due when their records are there, each behind those that it is made of", () => {
    expect(due(runSize - 1, [0, 0, 0])).toEqual([])
    const all = due(sizes[2]!, [0, 0, 0])
    expect(all).toHaveLength(fanOut ** 2 + fanOut + 1)
    expect(all.slice(fanOut - 1, fanOut + 1)).toEqual([
      { level: 0, run: fanOut - 1 },
      { level: 1, run: 0 }
    ])
    expect(all.slice(-2)).toEqual([
      { level: 1, run: fanOut - 1 },
      { level: 2, run: 0 }
    ])
    expect(due(sizes[1]!, [fanOut, 0, 0])).toEqual([{ level: 1, run: 0 }])
  })

  it.effect("give the same pages as the records themselves, in whichever order and window", () =>
    Effect.gen(function* () {
      const count = sizes[1]! + 2 * runSize + 100
      yield* add(count)
      const sorter = yield* SortedIndexer
      const check = (sort: Sort, direction: Direction, start: number, end: number) =>
        Effect.gen(function* () {
          const sign = direction === "asc" ? 1 : -1
          const expected = Array.from({ length: end - start }, (_, i) => start + i).toSorted(
            (a, b) => sign * (compare(valueOf(sort, a), valueOf(sort, b)) || a - b)
          )
          for (const page of [1, 50]) {
            const numbers = yield* shown({ sort, direction, start, end, page, pages: 3 })
            expect(numbers).toEqual(expected.slice((page - 1) * 200, (page + 2) * 200))
          }
        })
      // Some of the runs are written only.
      expect(yield* sorter.write(7)).toBe(7)
      yield* check("cost", "desc", 5, count)
      expect(yield* sorter.write(100)).toBe(12)
      expect(yield* runs).toEqual([fanOut + 2, 1, 0])
      for (const sort of sorts.filter((one) => one !== "timestamp")) {
        for (const direction of directions) {
          yield* check(sort, direction, 1, count + 1)
          yield* check(sort, direction, runSize - 5, count - runSize)
          yield* check(sort, direction, 500, 900)
        }
      }
    }).pipe(Effect.provide(layer))
  )

  it.effect("follow the records, tenant by tenant, and write nothing twice", () =>
    Effect.gen(function* () {
      const { write } = yield* SortedIndexer
      yield* add(runSize - 1)
      expect(yield* write(100)).toBe(0)
      yield* add(1)
      expect(yield* write(100)).toBe(1)
      expect(yield* write(100)).toBe(0)
      yield* add(3 * runSize)
      expect(yield* write(2)).toBe(2)
      // Another process goes on from where this one stopped.
      const other = Layer.fresh(SortedIndexer.layer)
      expect(
        yield* Effect.provide(
          Effect.flatMap(SortedIndexer, ({ write }) => write(100)),
          other
        )
      ).toBe(1)
      expect(yield* write(100)).toBe(0)
      expect(yield* runs).toEqual([4, 0, 0])
    }).pipe(Effect.provide(layer))
  )

  it.effect("that a crash cut short are not read, and are written whole later", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* add(runSize + 10)
      const { write } = yield* SortedIndexer
      yield* write(100)
      yield* sql`DELETE FROM tollgate_usage_sorted_runs`
      yield* sql`DELETE FROM tollgate_usage_sorted_blocks WHERE sort = 'cost' AND value = 0`
      const first = { sort: "cost", direction: "asc", start: 0, end: runSize + 20, page: 1, pages: 1 } as const
      const expected = yield* shown(first)
      expect(expected).toHaveLength(200)
      yield* Effect.provide(
        Effect.flatMap(SortedIndexer, ({ write }) => write(100)),
        Layer.fresh(SortedIndexer.layer)
      )
      expect(yield* runs).toEqual([1, 0, 0])
      expect(yield* shown(first)).toEqual(expected)
    }).pipe(Effect.provide(layer))
  )

  it.effect("are compared with their records", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const found = Effect.map(
        Effect.forEach(["0 of level 0", "1 of level 0", "0 of level 1"], (name) => {
          const [run, , , level] = name.split(" ")
          return faultsOf(sql, acme, { level: Number(level), run: Number(run) })
        }),
        (faults) => faults.flat()
      )
      yield* add(runSize * fanOut)
      yield* Effect.flatMap(SortedIndexer, ({ write }) => write(100))
      expect(yield* found).toEqual([])
      yield* sql`UPDATE tollgate_usage_records SET latency_ms = latency_ms + 1 WHERE number = ${runSize + 1}`
      expect(yield* found).toMatchObject([{ id: `1 of level 0 by latency of ${acme}` }])
      yield* sql`UPDATE tollgate_usage_records SET latency_ms = latency_ms - 1 WHERE number = ${runSize + 1}`
      yield* sql`DELETE FROM tollgate_usage_sorted_blocks WHERE level = 1 AND sort = 'cost' AND value = 0`
      expect(yield* found).toMatchObject([{ id: `0 of level 1 by cost of ${acme}` }])
    }).pipe(Effect.provide(layer))
  )

  // The plan is SQLite's: PostgreSQL makes one by how many rows there are.
  it.effect.skipIf(isPostgres)("are found by index", () =>
    Effect.gen(function* () {
      yield* add(2 * runSize)
      yield* Effect.flatMap(SortedIndexer, ({ write }) => write(100))
      const { tables } = yield* Scene.scanned(
        shown({ sort: "cost", direction: "desc", start: 1, end: 3 * runSize, page: 1, pages: 2 })
      )
      expect(tables).toEqual([])
      const plan = yield* Effect.flatMap(
        SqlClient,
        (sql) => sql<{ detail: string }>`EXPLAIN QUERY PLAN SELECT value AS first, seq, places
          FROM tollgate_usage_sorted_blocks WHERE tenant_id = '' AND sort = '' AND level = 0 AND run = 0 AND (value, seq) > (1, 1)
          ORDER BY value, seq LIMIT 1`
      )
      expect(plan.map(({ detail }) => detail)).toEqual([expect.stringContaining("SEARCH")])
    }).pipe(Effect.provide(layer))
  )
})

describePostgres("With several writers", () => {
  it.effect("records are found that were committed behind later ones", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { write } = yield* SortedIndexer
      yield* Scene.tenant(acme)
      yield* add(1)
      expect(yield* write(10)).toBe(0)
      yield* sql`UPDATE tollgate_usage_records SET seq = 1000000`
      expect(yield* write(10)).toBe(0)
      yield* add(runSize)
      expect(yield* write(10)).toBe(0)
      yield* TestClock.adjust("1 minute")
      expect(yield* write(10)).toBe(1)
    }).pipe(Effect.provide(layer))
  )
})
