/**
 * Where a tenant's records are. They are numbered in the order of time, so a window is a range of numbers: found by a search
 * in one bucket, counted by subtraction, read by index.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { Range } from "../kernel/Pieces.ts"
import { inBucket, recordsAmong } from "../ledger/Buckets.ts"
import { withDimensions } from "../ledger/Dimensions.ts"
import type { Window } from "./Window.ts"

export const make = (sql: SqlClient) => {
  /** `tollgate_usage_records r`, those of the range. */
  const among = (tenant: string, range: Range): Fragment => recordsAmong(sql, tenant, range)

  /** The same, each with its `tollgate_usage_dimensions d`. */
  const described = (tenant: string, range: Range): Fragment => recordsAmong(sql, tenant, range, withDimensions)

  /** The tenant's newest record. */
  const newest = Effect.fnUntraced(function* (tenant: string) {
    const [row] = yield* sql<{ readonly number: number; readonly at: number }>`SELECT r.number, r.at
      FROM tollgate_usage_buckets b CROSS JOIN tollgate_usage_records r ON ${sql.literal(inBucket)} AND r.tenant_id = b.tenant_id
      WHERE b.tenant_id = ${tenant} ORDER BY b.bucket DESC, r.number DESC LIMIT 1`
    return row
  })

  /** The first number at or after an instant: of the last bucket that began before it, the place where its time would be. */
  const numberAt = Effect.fnUntraced(function* (tenant: string, at: number) {
    const [place] = yield* sql<{ readonly number: number }>`
      WITH RECURSIVE search (bucket, low, high) AS (
        SELECT * FROM (
          SELECT b.bucket, b.first_number, (
            SELECT r.number + 1 FROM tollgate_usage_records r WHERE ${sql.literal(inBucket)} AND r.tenant_id = b.tenant_id
            ORDER BY r.number DESC LIMIT 1
          ) FROM tollgate_usage_buckets b
          WHERE b.tenant_id = ${tenant} AND b.first_at < ${at} ORDER BY b.bucket DESC LIMIT 1
        )
        UNION ALL
        SELECT b.bucket, iif(r.at < ${at}, r.number + 1, b.low), iif(r.at < ${at}, b.high, r.number)
        FROM search b CROSS JOIN tollgate_usage_records r
          ON ${sql.literal(inBucket)} AND r.tenant_id = ${tenant} AND r.number = (b.low + b.high) / 2
        WHERE b.low < b.high
      )
      SELECT low AS number FROM search WHERE low = high`
    return place?.number ?? 1
  })

  const range = Effect.fnUntraced(function* (tenant: string, { end, start }: Window) {
    const to = end === null ? ((yield* newest(tenant))?.number ?? 0) + 1 : yield* numberAt(tenant, end)
    const from = start === null ? 1 : yield* numberAt(tenant, start)
    return { from: Math.min(from, to), to } satisfies Range
  })

  /** When the tenant's latest record was made; undefined before its first. */
  const latest = (tenant: string): Effect.Effect<number | undefined, SqlError> =>
    Effect.map(newest(tenant), (record) => record?.at)

  return { among, described, range, latest }
}
