/**
 * Finds the safe horizon, the row before which no batch is open. A single writer commits rows in the order of their numbers. With several writers,
 * one can draw numbers and commit them after another has committed higher numbers. A reader that continues after the last visible row would miss
 * these rows. Every batch locks amounts before it draws numbers (`ConcurrentBatch`). Therefore, while `find` holds the table lock, every drawn number
 * belongs to a finished batch.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

/** The maximum wait for the lock, and the default number of retries. The wait also delays new batches. */
const lockTimeout = "50ms"
const triesMax = 30
/** The pause between attempts, in milliseconds. */
const pause = 100

const selectEnd = `SELECT
  (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tollgate_ledger_entries_seq) AS entry,
  (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tollgate_usage_records_seq) AS record`

/** The last row numbers before the horizon, which may be unused. */
export interface SafeHorizon {
  readonly entry: number
  readonly record: number
}

/** Finds the horizon. Returns `undefined` on failure, for example if batches take too long or the database user may only read. */
export const find = (sql: SqlClient, times = triesMax): Effect.Effect<SafeHorizon | undefined> => {
  const look = sql.withTransaction(
    Effect.gen(function* () {
      yield* sql.unsafe(`SET LOCAL lock_timeout = '${lockTimeout}'`)
      yield* sql.unsafe("LOCK TABLE tollgate_ledger_amounts IN EXCLUSIVE MODE")
      const [end] = yield* sql.unsafe<SafeHorizon>(selectEnd)
      return end!
    })
  )
  const wait = Effect.promise(() => new Promise((again) => setTimeout(again, pause)))
  return Effect.retry(look, {
    while: (error) => Effect.as(wait, (error.cause as { readonly code?: unknown })?.code === "55P03"),
    times
  }).pipe(Effect.orElseSucceed(() => undefined))
}
