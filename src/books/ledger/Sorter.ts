/** Writes the sorted runs of tenants with many records (`SortedRuns`). */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import * as Loop from "../../kernel/Loop.ts"
import * as Follower from "./Follower.ts"
import type { FollowerContract } from "./Follower.ts"
import * as SortedRuns from "./SortedRuns.ts"
import type { Run } from "./SortedRuns.ts"
import { Writer } from "./Writer.ts"

export interface SorterContract extends FollowerContract {}

export class Sorter extends Context.Tag("tollgate/ledger/Sorter")<Sorter, SorterContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Sorter, make))
  static readonly layerJobs = Loop.layer(Sorter, ({ job }) => [job])
}

/** How many blocks are written in one go. */
const blocksInPiece = 24

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { submit } = yield* Writer

  /** A run is there when its last piece is committed. A crash leaves blocks that are not read until they are written again. */
  const writeRun = Effect.fnUntraced(function* (tenant: string, run: Run) {
    const blocks = yield* SortedRuns.blocksOf(sql, tenant, run)
    const statements = blocks.map((block) => SortedRuns.writeBlock(tenant, run, block))
    statements.push(SortedRuns.writeRun(tenant, run))
    for (let from = 0; from < statements.length; from += blocksInPiece) {
      yield* submit({ postings: [], statements: statements.slice(from, from + blocksInPiece) })
    }
  })

  return yield* Follower.make({ name: "sorter", written: SortedRuns.written, writeRun })
})
