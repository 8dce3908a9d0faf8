/**
 * A place in the books before which nothing is written any more. One writer writes its rows in their order. Of several, one may take
 * numbers for its rows and commit them after another has committed later ones: a reader who goes on behind the last row that he saw would
 * never see them. But every batch locks amounts before it takes numbers (`Several`). While no batch can take a lock, all numbers that were
 * taken belong to finished batches.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { SeveralWriters } from "./Audit.ts"

/** How long batches wait behind this at most, if one of them takes that long to end, and how often it is tried again. */
const lockPatience = "50ms"
const triesMax = 30
/** Between two tries, in milliseconds. */
const pause = 100

const selectEnd = `SELECT
  (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tollgate_ledger_entries_seq) AS entry,
  (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tollgate_usage_records_seq) AS record`

type End = Effect.Effect.Success<SeveralWriters["end"]>

/** `undefined` where it cannot be known: batches that take too long, a user who may only read. */
export const find = (sql: SqlClient, times = triesMax): Effect.Effect<End> => {
  const look = sql.withTransaction(
    Effect.gen(function* () {
      yield* sql.unsafe(`SET LOCAL lock_timeout = '${lockPatience}'`)
      yield* sql.unsafe("LOCK TABLE tollgate_ledger_amounts IN EXCLUSIVE MODE")
      const [end] = yield* sql.unsafe<NonNullable<End>>(selectEnd)
      return end!
    })
  )
  const wait = Effect.promise(() => new Promise((again) => setTimeout(again, pause)))
  return Effect.retry(look, {
    while: (error) => Effect.as(wait, (error.cause as { readonly code?: unknown })?.code === "55P03"),
    times
  }).pipe(Effect.orElseSucceed(() => undefined))
}
