/**
 * Reads entries and records once, in order and in slices. Each slice is a read transaction of its own, so that no transaction is long and
 * the WAL can be folded back. What must hold from one row to the next is compared on the way, and so are the offsets, and the rollups day
 * by day (`AuditSums`); what accounts and transfers must be by then, in the last slice, which reads them in the same transaction as the
 * last rows. So whatever is written meanwhile is either read too or not there yet: it causes no finding and hides none.
 *
 * An audit may begin behind rows that were found right before (`Checkpoint`). Then it looks at what came since: the rows, and the accounts that
 * they touch. What was changed in older rows, only an audit of everything finds; it alone looks at the rollups.
 *
 * Of several writers one may commit rows that lie before those that another has committed. So there the slices go up to a place that no
 * batch writes before any more (`SafeHorizon`), which is the checkpoint too. What comes behind it is read at one moment with what all must have come
 * to. A moment that lasted for the whole audit would keep the server from taking away old versions of rows that every charge changes.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { comparerOf } from "./AuditComparer.ts"
import type { AtOneMoment } from "./AuditComparer.ts"
import { readerOf } from "./AuditReader.ts"
import type { Report } from "./AuditRules.ts"
import { quick } from "./Checkpoint.ts"
import type { Checkpoint, Pace, Progress } from "./Checkpoint.ts"
import { RunningTotals } from "./RunningTotals.ts"
import type { Place } from "./RunningTotals.ts"

export interface ConcurrentWriters {
  /** A place before which nothing is written any more. */
  readonly first: Readonly<Place>
  /** The same later on; `undefined` where it cannot be known at the moment. */
  readonly end: Effect.Effect<Readonly<Place> | undefined>
  readonly atOneMoment: AtOneMoment
}

/** Reads what there is behind the checkpoint, and reports what is off; answers the checkpoint that the next one goes on from. */
export const audit = Effect.fnUntraced(function* (
  since: Checkpoint,
  report: Report,
  progress: (progress: Progress) => Effect.Effect<void>,
  pace: Pace = quick,
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
    // The one whose time is behind comes first, so that a cost and its debit are met close to each other.
    const isEntry = place.record >= last.record || (place.entry < last.entry && totals.entryAt <= totals.recordAt)
    rows += yield* isEntry ? reader.entries(pace.slice, last.entry) : reader.records(pace.slice, last.record)
    yield* comparer.offsets
    yield* progress({ rows, of: last.entry - since.entry + last.record - since.record })
    yield* pace.pause
    yield* comparer.daysOver
    if (behind(last) > 0) continue
    // Rows written meanwhile are read in slices too: the last transaction reads only the rest, less than a slice.
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
