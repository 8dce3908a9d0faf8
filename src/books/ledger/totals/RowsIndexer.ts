/** Adds records of all tenants to totals, row by row and a little after the charge. This part is the same for all totals that have an end. */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type * as Loop from "../../../kernel/Loop.ts"
import { pieceSize } from "../../../kernel/Pieces.ts"
import type { BooksUnavailable } from "../rules/Problems.ts"
import type { Statement } from "../rules/Transaction.ts"
import * as SafeHorizon from "../write/SafeHorizon.ts"
import { tryWrite } from "../write/Statements.ts"
import { Writer } from "../write/Writer.ts"
import * as ProviderTotals from "./ProviderTotals.ts"

export interface RowsIndexerContract {
  /** Adds the records that are there, of a long history a part; answers whether it added any. */
  readonly add: Effect.Effect<boolean, BooksUnavailable>
  /** Does so when there is enough of it. `layerJobs` runs it. */
  readonly job: Loop.Job
}

export interface RowTotals {
  readonly name: string
  /**
   * From how many records on they are added: a reader takes a microsecond for each that is not. Of several writers all wait a few
   * milliseconds for the end of batches each time (`SafeHorizon`).
   */
  readonly enough: number
  readonly endOf: (sql: SqlClient) => Effect.Effect<number, SqlError>
  /** Adds the records after `end` up to the row `to`. Refused if another node has moved the end. */
  readonly adding: (end: number, to: number) => ReadonlyArray<Statement>
}

/** How many transactions a turn makes at most, of `pieceSize` records each: the writer is held up for a millisecond or two by one. */
const piecesMax = 64

/** The pauses behind a turn that added some, and one that added none. */
const pauseBusy = "200 millis"
const pauseIdle = "2 seconds"

export const make = Effect.fnUntraced(function* ({ adding, endOf, enough, name }: RowTotals) {
  const sql = yield* SqlClient
  const writer = yield* Writer

  /** The last row, of those before which nothing is written any more; 0 where it cannot be known at the moment. */
  const settledRow = sql.onDialectOrElse({
    pg: () => Effect.flatMap(SafeHorizon.find(sql, 0), (end) => ProviderTotals.lastRow(sql, end?.record ?? 0)),
    orElse: () => ProviderTotals.lastRow(sql)
  })

  const add: RowsIndexerContract["add"] = Effect.gen(function* () {
    const end = yield* Effect.orDie(endOf(sql))
    const last = Math.min(yield* Effect.orDie(settledRow), end + piecesMax * pieceSize)
    for (let from = end; from < last; from += pieceSize) {
      const added = yield* tryWrite(writer, ...adding(from, Math.min(from + pieceSize, last)))
      // Another node was here.
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
