/** Writes the totals of tenants with many records (`Totals`). */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import * as Loop from "../../../kernel/Loop.ts"
import * as BackgroundIndexer from "./BackgroundIndexer.ts"
import type { BackgroundIndexerContract } from "./BackgroundIndexer.ts"
import type { Run } from "./SortedIndex.ts"
import * as Totals from "./Totals.ts"
import { Writer } from "../write/Writer.ts"

export interface TotalsIndexerContract extends BackgroundIndexerContract {}

export class TotalsIndexer extends Context.Tag("tollgate/ledger/TotalsIndexer")<
  TotalsIndexer,
  TotalsIndexerContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(TotalsIndexer, make))
  static readonly layerJobs = Loop.layer(TotalsIndexer, ({ job }) => [job])
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { submit } = yield* Writer
  const writeRun = Effect.fnUntraced(function* (tenant: string, run: Run) {
    const tally = yield* Totals.tallyOf(sql, tenant, run)
    yield* submit({ postings: [], statements: [Totals.write(tenant, tally)] })
  })
  return yield* BackgroundIndexer.make({ name: "tallier", written: Totals.written, writeRun })
})
