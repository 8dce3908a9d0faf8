/**
 * Maps time to record numbers. A tenant's records are numbered in chronological order, so a window is a range of numbers. A binary search finds the
 * range, and a subtraction counts its records.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Range } from "../../kernel/Pieces.ts"
import { lastUpTo, offsetEvery, recordsAmong, tables } from "../../books/ledger/rows/RowLinks.ts"
import { withDimensions } from "../../books/ledger/rows/Dimensions.ts"
import type { Window } from "./Window.ts"

export const make = (sql: SqlClient) => {
  /** Selects the rows of `tollgate_usage_records r` in a range. */
  const among = (tenant: string, range: Range): Fragment => recordsAmong(sql, tenant, range)

  /** Selects the rows of `among`, joined with `tollgate_usage_dimensions d`. */
  const described = (tenant: string, range: Range): Fragment => recordsAmong(sql, tenant, range, withDimensions)

  const newest = Effect.fnUntraced(function* (tenant: string) {
    const [row] = yield* sql<{ readonly number: number; readonly at: number }>`SELECT r.number, r.at
      FROM ${sql.literal(tables.r.heads)} h CROSS JOIN tollgate_usage_records r ON r.seq = h.newest WHERE h.id = ${tenant}`
    return row
  })

  /** Returns the record count per tenant. */
  const heads = (tenants: ReadonlyArray<TenantId>) =>
    sql<{ readonly id: TenantId; readonly total: number }>`SELECT h.id, h.total FROM ${sql.literal(tables.r.heads)} h
      WHERE h.id IN (SELECT value FROM json_each(${JSON.stringify(tenants)}))`

  // A literal, because SQLite binds a JavaScript number as a float, and the division would be fractional.
  const every = sql.literal(`${offsetEvery}`)
  /** Finds the number of the first record at or after `at`. Searches the offsets, then the records between adjacent offsets. */
  const numberAt = Effect.fnUntraced(function* (tenant: string, at: number) {
    const [place] = yield* sql<{ readonly number: number }>`
      WITH RECURSIVE search (owner, low, high) AS (
        SELECT h.owner, CAST(0 AS BIGINT), h.total / ${every} FROM ${sql.literal(tables.r.heads)} h WHERE h.id = ${tenant}
        UNION ALL
        SELECT s.owner, CASE WHEN o.at < ${at} THEN o.number / ${every} ELSE s.low END,
          CASE WHEN o.at < ${at} THEN s.high ELSE o.number / ${every} - 1 END
        FROM search s CROSS JOIN tollgate_usage_offsets o
          ON o.owner = s.owner AND o.number = ((s.low + s.high) / 2 + 1) * ${every}
        WHERE s.low < s.high
      )
      SELECT low * ${every} AS number FROM search WHERE low = high`
    if (place === undefined) return 1
    const from = place.number + 1
    const [before] = yield* sql<{ readonly count: number }>`SELECT COUNT(*) AS count
      FROM ${among(tenant, { from, to: from + offsetEvery })} AND r.at < ${at}`
    return from + before!.count
  })

  const range = Effect.fnUntraced(function* (tenant: string, { end, start }: Window) {
    const to = end === null ? ((yield* newest(tenant))?.number ?? 0) + 1 : yield* numberAt(tenant, end)
    const from = start === null ? 1 : yield* numberAt(tenant, start)
    return { from: Math.min(from, to), to } satisfies Range
  })

  /** Returns the range of the tenant's records after `row`. Row numbers run across all tenants. */
  const after = Effect.fnUntraced(function* (tenant: string, row: number) {
    const [before] = yield* sql<{ readonly number: number }>`SELECT MAX(number) AS number FROM (
      ${lastUpTo(sql, "r", tenant, row, "r.number")}) before`
    return { from: (before?.number ?? 0) + 1, to: ((yield* newest(tenant))?.number ?? 0) + 1 } satisfies Range
  })

  /** Returns the time of the tenant's latest record, or `undefined` if there are no records. */
  const latest = (tenant: string): Effect.Effect<number | undefined, SqlError> =>
    Effect.map(newest(tenant), (record) => record?.at)

  return { among, described, heads, range, after, latest }
}
