/** Adds records to the sums by provider (`ProviderTotals`), a little behind the charge. */
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
  /** Adds what is there, of a long history a part; answers whether it added any. */
  readonly add: Effect.Effect<boolean, BooksUnavailable>
  /** Does so when there is enough of it. `layerJobs` runs it. */
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
 * From how many records on they are added: a reader takes a microsecond for each that is not. Of several writers all wait a few milliseconds
 * for the end of batches each time (`SafeHorizon`).
 */
const enough = 16_384

/** How many transactions a turn makes at the most, of `pieceSize` records each: the writer is held up for a millisecond or two by one. */
const piecesMax = 64

/** The pauses behind a turn that added some, and one that added none. */
const pauseBusy = "200 millis"
const pauseIdle = "2 seconds"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer

  /** The last row, of those before which nothing is written any more; 0 where it cannot be known at the moment. */
  const settledRow = sql.onDialectOrElse({
    pg: () => Effect.flatMap(SafeHorizon.find(sql, 0), (end) => ProviderTotals.lastRow(sql, end?.record ?? 0)),
    orElse: () => ProviderTotals.lastRow(sql)
  })

  const add: ProviderTotalsIndexerContract["add"] = Effect.gen(function* () {
    const end = yield* Effect.orDie(ProviderTotals.endOf(sql))
    const last = Math.min(yield* Effect.orDie(settledRow), end + piecesMax * pieceSize)
    for (let from = end; from < last; from += pieceSize) {
      const added = yield* tryWrite(writer, ...ProviderTotals.adding(from, Math.min(from + pieceSize, last)))
      // Another node was here.
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
