/**
 * Reads entries and records once, in order and in slices. Each slice is a separate read transaction, so no transaction is long and the WAL can be
 * checkpointed. While reading, the audit checks the rules between rows, the offsets, and the rollups day by day (`AuditSums`). The last slice checks
 * accounts and transfers in the transaction that reads the last rows. Concurrent writes are therefore either read or skipped completely, so they
 * neither cause false findings nor hide real ones.
 *
 * An audit can begin after previously verified rows (`Checkpoint`). In that case, it checks only newer rows and the accounts that they touch. Only a
 * full audit finds changes to older rows and checks the rollups.
 *
 * With several writers, one can commit rows with lower numbers than those already committed by another. The slices therefore end at the safe
 * horizon (`SafeHorizon`). The checkpoint is the last row before it. The rows after it are read together with the accounts, in one snapshot. A
 * snapshot for the entire audit would prevent the server from removing old row versions, which every charge creates.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { comparerOf } from "./AuditComparer.ts"
import type { AtOneMoment } from "./AuditComparer.ts"
import { readerOf } from "./AuditReader.ts"
import type { Report } from "./AuditRules.ts"
import { fastPace } from "./Checkpoint.ts"
import type { Checkpoint, Pace, Progress } from "./Checkpoint.ts"
import { RunningTotals } from "./RunningTotals.ts"
import type { Place } from "./RunningTotals.ts"

export interface ConcurrentWriters {
  /** The safe horizon at the start. */
  readonly first: Readonly<Place>
  /** The current safe horizon; `undefined` if it cannot be determined now. */
  readonly end: Effect.Effect<Readonly<Place> | undefined>
  readonly atOneMoment: AtOneMoment
}

/** Reads the rows after the checkpoint and reports findings. Returns the checkpoint for the next audit. */
export const audit = Effect.fnUntraced(function* (
  since: Checkpoint,
  report: Report,
  progress: (progress: Progress) => Effect.Effect<void>,
  pace: Pace = fastPace,
  several?: ConcurrentWriters
) {
  const sql = yield* SqlClient
  const totals = new RunningTotals(since, report)
  const reader = readerOf(sql, since, totals)
  const { lastRows, place } = reader
  const comparer = comparerOf({
    ...pace,
    sql,
    totals,
    readRest: reader.rest,
    atOneMoment: several?.atOneMoment ?? sql.withTransaction
  })
  const newest = Effect.map(
    sql<Place>`SELECT COALESCE((SELECT MAX(seq) FROM tollgate_ledger_entries), 0) AS entry,
      COALESCE((SELECT MAX(seq) FROM tollgate_usage_records), 0) AS record`,
    ([row]) => row!
  )
  const behind = ({ entry, record }: Readonly<Place>) => entry - place.entry + record - place.record
  let last: Readonly<Place> = several?.first ?? (yield* newest)
  for (let rows = 0; behind(last) > 0;) {
    // Read from the table with the older last row, so that a cost and its debit are read close together.
    const isEntry = place.record >= last.record || (place.entry < last.entry && totals.entryAt <= totals.recordAt)
    rows += yield* isEntry ? reader.entries(pace.slice, last.entry) : reader.records(pace.slice, last.record)
    yield* comparer.offsets
    yield* progress({ rows, of: last.entry - since.entry + last.record - since.record })
    yield* pace.pause
    yield* comparer.daysOver
    if (behind(last) > 0) continue
    // Read new rows in slices too, so that the last transaction reads at most one slice.
    const now = several === undefined ? yield* newest : yield* several.end
    if (now !== undefined && behind(now) > pace.slice) last = now
  }
  const checkpoint = totals.checkpointAt(lastRows)
  const lastMoment = Effect.gen(function* () {
    if (totals.whole) yield* comparer.rest
    yield* sql.withTransaction(reader.last)
  })
  yield* several === undefined ? lastMoment : several.atOneMoment(lastMoment)
  yield* comparer.offsets
  return several === undefined ? totals.checkpointAt(lastRows) : checkpoint
}, Effect.orDie)
