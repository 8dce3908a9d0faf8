/** Writes the sorted runs of tenants with many records (`SortedRuns`), a little behind the records, in pieces that hold nobody up. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import * as Loop from "../kernel/Loop.ts"
import { inPieces, turn } from "../kernel/Pieces.ts"
import { recordsOf } from "./Chains.ts"
import type { BooksUnavailable, Conflict } from "./Problems.ts"
import * as SortedRuns from "./SortedRuns.ts"
import type { Run } from "./SortedRuns.ts"
import { Writer } from "./Writer.ts"

export interface SorterContract {
  /** Writes up to `most` of the runs whose records are all there; answers how many. */
  readonly write: (most: number) => Effect.Effect<number, BooksUnavailable | Conflict>
  /** `layerJobs` runs it. */
  readonly job: Loop.Job
}

export class Sorter extends Context.Tag("tollgate/ledger/Sorter")<Sorter, SorterContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Sorter, make))
  static readonly layerJobs = Loop.layer(Sorter, ({ job }) => [job])
}

/** How many tenants, and how many records, are looked at in one go, and how many blocks are written. */
const tenantsInPiece = 1024
const recordsInPiece = 4096
const blocksInPiece = 24

/**
 * How long a batch may be at work at most, in milliseconds. Where several write, one may commit records that lie before those of another that
 * were looked at already: so they are looked at again when that is over.
 */
const batchMillis = 60_000

/** How many runs a turn of the job writes at the most, and the pauses behind a turn that wrote some and one that wrote none. */
const runsInTurn = 64
const pauseBusy = "200 millis"
const pauseIdle = "2 seconds"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { submit } = yield* Writer

  /** Tenants that may have a run to be written. */
  const waiting = new Set<string>()
  /** The last record that was looked at; none before all tenants were. */
  let seen: number | undefined
  const hasCompany = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
  /** What is looked at again, from when on. */
  let again: Array<{ readonly from: number; readonly last: number; readonly at: number }> = []

  const find = Effect.fnUntraced(function* () {
    const [row] = yield* sql<{ readonly seq: number | null }>`SELECT MAX(seq) AS seq FROM tollgate_usage_records`
    const last = row?.seq ?? 0
    const now = yield* Clock.currentTimeMillis
    if (seen === undefined) yield* findAll
    else if (last > seen) {
      yield* findBehind(seen, last)
      if (hasCompany) again.push({ from: seen, last, at: now + batchMillis })
    }
    seen = last
    const due = again.filter(({ at }) => at <= now)
    again = again.filter(({ at }) => at > now)
    for (const { from, last } of due) yield* findBehind(from, last)
  })

  const findAll = Effect.gen(function* () {
    for (let last: string | undefined = ""; last !== undefined;) {
      const tenants: ReadonlyArray<TenantRow> =
        yield* sql<TenantRow>`SELECT tenant_id, ${sql.literal(recordsOf("t.tenant_id"))} AS records
        FROM (
          SELECT id AS tenant_id FROM tollgate_usage_tenants WHERE id > ${last} ORDER BY id LIMIT ${tenantsInPiece}
        ) t`
      for (const { records, tenant_id } of tenants) {
        if (records >= SortedRuns.runSize) waiting.add(tenant_id)
      }
      last = tenants.at(-1)?.tenant_id
      yield* turn
    }
  })

  /** The tenants for which a run was made full by one of these records. */
  const findBehind = (from: number, last: number) =>
    inPieces(
      { from: from + 1, to: last + 1 },
      ({ from, to }) =>
        Effect.map(
          sql<{ readonly tenant_id: string }>`SELECT tenant_id FROM tollgate_usage_records
            WHERE seq >= ${from} AND seq < ${to} AND number % ${SortedRuns.runSize} = 0`,
          (rows) => {
            for (const { tenant_id } of rows) waiting.add(tenant_id)
          }
        ),
      recordsInPiece
    )

  /** A run is there when its last piece is committed. A crash before leaves blocks that nobody reads until they are written again. */
  const writeRun = Effect.fnUntraced(function* (tenant: string, run: Run) {
    const blocks = yield* SortedRuns.blocksOf(sql, tenant, run)
    const statements = blocks.map((block) => SortedRuns.writeBlock(tenant, run, block))
    statements.push(SortedRuns.writeRun(tenant, run))
    for (let from = 0; from < statements.length; from += blocksInPiece) {
      yield* submit({ postings: [], statements: statements.slice(from, from + blocksInPiece) })
    }
  })

  const write: SorterContract["write"] = Effect.fnUntraced(function* (most) {
    yield* Effect.orDie(find())
    let left = most
    for (const tenant of waiting) {
      const [row] = yield* Effect.orDie(
        sql<TenantRow>`SELECT tenant_id, ${sql.literal(recordsOf("t.tenant_id"))} AS records FROM (SELECT ${tenant} AS tenant_id) t`
      )
      const runs = SortedRuns.due(row?.records ?? 0, yield* Effect.orDie(SortedRuns.written(sql, tenant)))
      for (const run of runs.slice(0, left)) yield* Effect.catchTag(writeRun(tenant, run), "SqlError", Effect.die)
      if (runs.length > left) return most
      left -= runs.length
      waiting.delete(tenant)
    }
    return most - left
  })

  const turnOfJob = Effect.map(
    Effect.suspend(() => write(runsInTurn)),
    (made) => (made > 0 ? pauseBusy : pauseIdle)
  )
  // Records that other nodes wrote may have become visible in another order. A run that two nodes write is the same bytes.
  const takeOver = Effect.sync(() => {
    seen = undefined
    again = []
  })
  return { write, job: { name: "sorter", turn: turnOfJob, takeOver } } satisfies SorterContract
})

interface TenantRow {
  readonly tenant_id: string
  readonly records: number
}
