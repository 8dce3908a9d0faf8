/** Writes the tallies of tenants with many records (`Tallies`). */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import * as Loop from "../../kernel/Loop.ts"
import * as Follower from "./Follower.ts"
import type { FollowerContract } from "./Follower.ts"
import type { Run } from "./SortedRuns.ts"
import * as Tallies from "./Tallies.ts"
import { Writer } from "./Writer.ts"

export interface TallierContract extends FollowerContract {}

export class Tallier extends Context.Tag("tollgate/ledger/Tallier")<Tallier, TallierContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Tallier, make))
  static readonly layerJobs = Loop.layer(Tallier, ({ job }) => [job])
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { submit } = yield* Writer
  const writeRun = Effect.fnUntraced(function* (tenant: string, run: Run) {
    const tally = yield* Tallies.tallyOf(sql, tenant, run)
    yield* submit({ postings: [], statements: [Tallies.write(tenant, tally)] })
  })
  return yield* Follower.make({ name: "tallier", written: Tallies.written, writeRun })
})
