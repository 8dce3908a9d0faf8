/** Adds records to the totals of providers (`ProviderTotals`), some time after the charge. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import * as Loop from "../../../kernel/Loop.ts"
import { pieceSize } from "../../../kernel/Pieces.ts"
import * as SafeHorizon from "../write/SafeHorizon.ts"
import * as ProviderTotals from "./ProviderTotals.ts"
import type { BooksUnavailable } from "../rules/Problems.ts"
import { tryWrite } from "../write/Statements.ts"
import { Writer } from "../write/Writer.ts"

export interface ProviderTotalsIndexerContract {
  /** Adds new records, at most a part of a long history. Returns whether it added any. */
  readonly add: Effect.Effect<boolean, BooksUnavailable>
  /** Runs `add` when enough records are new. `layerJobs` runs it. */
  readonly job: Loop.Job
}

export class ProviderTotalsIndexer extends Context.Tag("tollgate/ledger/ProviderTotalsIndexer")<
  ProviderTotalsIndexer,
  ProviderTotalsIndexerContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(ProviderTotalsIndexer, make))
  static readonly layerJobs = Loop.layer(ProviderTotalsIndexer, ({ job }) => [job])
}

/**
 * The number of new records from which they are added. A reader takes a microsecond for each record not yet added. With several writers, each
 * run makes all of them wait a few milliseconds for the end of batches (`SafeHorizon`).
 */
const enough = 16_384

/** The most transactions of a turn, of `pieceSize` records each. One takes the writer a millisecond or two. */
const piecesMax = 64

/** The pauses after a turn that added records, and after one that did not. */
const pauseBusy = "200 millis"
const pauseIdle = "2 seconds"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer

  /** The last row before the safe horizon; 0 if the horizon cannot be found at the moment. */
  const settledRow = sql.onDialectOrElse({
    pg: () => Effect.flatMap(SafeHorizon.find(sql, 0), (end) => ProviderTotals.lastRow(sql, end?.record ?? 0)),
    orElse: () => ProviderTotals.lastRow(sql)
  })

  const add: ProviderTotalsIndexerContract["add"] = Effect.gen(function* () {
    const end = yield* Effect.orDie(ProviderTotals.endOf(sql))
    const last = Math.min(yield* Effect.orDie(settledRow), end + piecesMax * pieceSize)
    for (let from = end; from < last; from += pieceSize) {
      const added = yield* tryWrite(writer, ...ProviderTotals.adding(from, Math.min(from + pieceSize, last)))
      // Another node has moved the end.
      if (!added) return from > end
    }
    return last > end
  })

  const turnOfJob = Effect.gen(function* () {
    const behind = (yield* ProviderTotals.lastRow(sql)) - (yield* ProviderTotals.endOf(sql))
    if (behind < enough) return pauseIdle
    return (yield* add) ? pauseBusy : pauseIdle
  })

  return { add, job: { name: "daily sums", turn: turnOfJob } } satisfies ProviderTotalsIndexerContract
})
