/** Adds all tenants' records to totals, in row order and shortly after the charge. All totals with an end share this code. */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type * as Loop from "../../../kernel/Loop.ts"
import { sliceSize } from "../../../kernel/Pieces.ts"
import type { BooksUnavailable } from "../rules/Problems.ts"
import type { Statement } from "../rules/Transaction.ts"
import * as SafeHorizon from "../write/SafeHorizon.ts"
import { tryWrite } from "../write/Statements.ts"
import { Writer } from "../write/Writer.ts"
import * as ProviderTotals from "./ProviderTotals.ts"

export interface RowsIndexerContract {
  /** Adds the available records, or part of them if the history is long. Returns whether any were added. */
  readonly add: Effect.Effect<boolean, BooksUnavailable>
  /** The job that adds records once there are `enough`. `layerJobs` runs it. */
  readonly job: Loop.Job
}

export interface RowTotals {
  readonly name: string
  /**
   * The minimum number of new records per addition. A reader spends a microsecond on each record that has not been added yet. But with
   * several writers, each addition makes all of them wait a few milliseconds until the running batches end (`SafeHorizon`).
   */
  readonly enough: number
  readonly endOf: (sql: SqlClient) => Effect.Effect<number, SqlError>
  /** Builds the statements that add the records after `end` and up to the row `to`. They conflict if another node has moved the end. */
  readonly adding: (end: number, to: number) => ReadonlyArray<Statement>
}

/** The maximum number of transactions per iteration. Each adds a slice of records and takes the writer a millisecond or two. */
const piecesMax = 64

/** The pauses after an iteration that added records, and after one that did not. */
const pauseBusy = "200 millis"
const pauseIdle = "2 seconds"

export const make = Effect.fnUntraced(function* ({ adding, endOf, enough, name }: RowTotals) {
  const sql = yield* SqlClient
  const writer = yield* Writer

  /** Reads the last row before the safe horizon; 0 if the horizon cannot be determined now. With a single writer, this is the last row. */
  const settledRow = sql.onDialectOrElse({
    pg: () => Effect.flatMap(SafeHorizon.find(sql, 0), (end) => ProviderTotals.lastRow(sql, end?.record ?? 0)),
    orElse: () => ProviderTotals.lastRow(sql)
  })

  const add: RowsIndexerContract["add"] = Effect.gen(function* () {
    const end = yield* Effect.orDie(endOf(sql))
    const last = Math.min(yield* Effect.orDie(settledRow), end + piecesMax * sliceSize)
    for (let from = end; from < last; from += sliceSize) {
      const added = yield* tryWrite(writer, ...adding(from, Math.min(from + sliceSize, last)))
      // Another node has moved the end.
      if (!added) return from > end
    }
    return last > end
  })

  const turnOfJob = Effect.gen(function* () {
    const behind = (yield* ProviderTotals.lastRow(sql)) - (yield* endOf(sql))
    if (behind < enough) return pauseIdle
    return (yield* add) ? pauseBusy : pauseIdle
  })

  return { add, job: { name, turn: turnOfJob } } satisfies RowsIndexerContract
})
