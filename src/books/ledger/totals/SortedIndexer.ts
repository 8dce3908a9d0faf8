/** Writes the sorted index of tenants with many records (`SortedIndex`). */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import * as Loop from "../../../kernel/Loop.ts"
import * as BackgroundIndexer from "./BackgroundIndexer.ts"
import type { BackgroundIndexerContract } from "./BackgroundIndexer.ts"
import * as SortedIndex from "./SortedIndex.ts"
import type { Run } from "./SortedIndex.ts"
import { Writer } from "../write/Writer.ts"

export interface SortedIndexerContract extends BackgroundIndexerContract {}

export class SortedIndexer extends Context.Tag("tollgate/ledger/SortedIndexer")<
  SortedIndexer,
  SortedIndexerContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(SortedIndexer, make))
  static readonly layerJobs = Loop.layer(SortedIndexer, ({ job }) => [job])
}

const blocksInPiece = 24

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { submit } = yield* Writer

  /** Writes a run. Readers use it only once its last transaction has committed, so blocks left by a crash are not read. */
  const writeRun = Effect.fnUntraced(function* (tenant: string, run: Run) {
    const blocks = yield* SortedIndex.blocksOf(sql, tenant, run)
    const statements = blocks.map((block) => SortedIndex.writeBlock(tenant, run, block))
    statements.push(SortedIndex.writeRun(tenant, run))
    for (let from = 0; from < statements.length; from += blocksInPiece) {
      yield* submit({ postings: [], statements: statements.slice(from, from + blocksInPiece) })
    }
  })

  return yield* BackgroundIndexer.make({ name: "sorter", written: SortedIndex.written, writeRun })
})
