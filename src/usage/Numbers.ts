/**
 * Where a tenant's records are. They are numbered in the order of time, so a window is a range of numbers: found by a search
 * in one bucket, counted by subtraction, read by index.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { bucketShift } from "../ledger/Buckets.ts"
import { withDimensions } from "../ledger/Dimensions.ts"
import type { Window } from "./Window.ts"

/** The numbers from `from` on, without `to`. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** How many records are read in one go where many must be: a millisecond or two. */
export const pieceSize = 2048

/**
 * Reads a range piece by piece, in order. Reading holds up the loop that serves, so of all that is read in pieces there is one piece
 * between two looks at the sockets: whoever waits for something else waits for one piece at the most, and readings take turns.
 */
export const inPieces = <A, E>(
  { from, to }: Range,
  read: (piece: Range) => Effect.Effect<A, E>
): Effect.Effect<ReadonlyArray<A>, E> =>
  Effect.forEach(
    Array.from({ length: Math.max(0, Math.ceil((to - from) / pieceSize)) }, (_, i) => from + i * pieceSize),
    (first) => {
      const piece = read({ from: first, to: Math.min(to, first + pieceSize) })
      return first === from ? piece : Effect.zipRight(turn, piece)
    }
  )

const waiting: Array<() => void> = []

// Not `yieldNow`, which goes on before the loop looks at its sockets.
const turn = Effect.async<void>((resume) => {
  waiting.push(() => resume(Effect.void))
  if (waiting.length === 1) setImmediate(next)
})

const next = () => {
  const go = waiting.shift()
  if (waiting.length > 0) setImmediate(next)
  go?.()
}

export const make = (sql: SqlClient) => {
  const found = (tenant: string, { from, to }: Range, beside: string): Fragment => sql`tollgate_usage_buckets b
    CROSS JOIN tollgate_usage_records r ON ${inBucket} AND r.tenant_id = b.tenant_id AND r.number >= ${from} AND r.number < ${to}
    ${sql.literal(beside)}
    WHERE b.tenant_id = ${tenant} AND b.first_number < ${to} AND b.last_number >= ${from}`

  /** `tollgate_usage_records r`, those of the range: through the buckets, since the index begins with them. */
  const among = (tenant: string, range: Range): Fragment => found(tenant, range, "")

  /** The same, each with its `tollgate_usage_dimensions d`. */
  const described = (tenant: string, range: Range): Fragment => found(tenant, range, withDimensions)

  // The expression is the index's own, to the letter, and `+` takes the column's affinity from the bucket: without either,
  // SQLite scans the table instead.
  const inBucket = sql.literal(`r.seq >> ${bucketShift} = +b.bucket`)

  /** The first number at or after an instant: of the last bucket that began before it, the place where its time would be. */
  const numberAt = Effect.fnUntraced(function* (tenant: string, at: number) {
    const [place] = yield* sql<{ readonly number: number }>`
      WITH RECURSIVE search (bucket, low, high) AS (
        SELECT * FROM (
          SELECT bucket, first_number, last_number + 1 FROM tollgate_usage_buckets
          WHERE tenant_id = ${tenant} AND first_at < ${at} ORDER BY bucket DESC LIMIT 1
        )
        UNION ALL
        SELECT b.bucket, iif(r.at < ${at}, r.number + 1, b.low), iif(r.at < ${at}, b.high, r.number)
        FROM search b CROSS JOIN tollgate_usage_records r
          ON ${inBucket} AND r.tenant_id = ${tenant} AND r.number = (b.low + b.high) / 2
        WHERE b.low < b.high
      )
      SELECT low AS number FROM search WHERE low = high`
    return place?.number ?? 1
  })

  const count = (tenant: string): Effect.Effect<number, SqlError> =>
    Effect.map(
      sql<{ readonly records: number }>`SELECT records FROM tollgate_usage_counters WHERE tenant_id = ${tenant}`,
      ([row]) => row?.records ?? 0
    )

  const range = Effect.fnUntraced(function* (tenant: string, { end, start }: Window) {
    const to = end === null ? (yield* count(tenant)) + 1 : yield* numberAt(tenant, end)
    const from = start === null ? 1 : yield* numberAt(tenant, start)
    return { from: Math.min(from, to), to } satisfies Range
  })

  /** When the tenant's latest record was made; undefined before its first. */
  const latest = (tenant: string): Effect.Effect<number | undefined, SqlError> =>
    Effect.map(
      sql<{ readonly at: number }>`SELECT last_at AS at FROM tollgate_usage_buckets
        WHERE tenant_id = ${tenant} ORDER BY bucket DESC LIMIT 1`,
      ([row]) => row?.at
    )

  return { among, described, range, latest }
}
