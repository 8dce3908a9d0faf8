/** Writes the runs of tenants' records for an index (`SortedIndex`, `Totals`) in the background. A run is due once all its records exist. */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Clock, Effect } from "effect"
import type * as Loop from "../../../kernel/Loop.ts"
import { inSlices, turn } from "../../../kernel/Pieces.ts"
import { recordsOf } from "../rows/RowLinks.ts"
import type { BooksUnavailable, Conflict } from "../rules/Problems.ts"
import { due, runSize } from "./SortedIndex.ts"
import type { Run, Written } from "./SortedIndex.ts"

export interface BackgroundIndexerContract {
  /** Writes up to `most` due runs. Returns the number of written runs. */
  readonly write: (most: number) => Effect.Effect<number, BooksUnavailable | Conflict>
  /** The job that writes due runs. `layerJobs` runs it. */
  readonly job: Loop.Job
}

export interface Indexing {
  readonly name: string
  readonly written: (sql: SqlClient, tenant: string) => Effect.Effect<Written, SqlError>
  /** Writes a run. The result must be deterministic, because two nodes can write the same run. */
  readonly writeRun: (tenant: string, run: Run) => Effect.Effect<void, BooksUnavailable | Conflict | SqlError>
}

/** The number of tenants, and of records, to read at a time. */
const tenantsInPiece = 1024
const recordsInPiece = 4096

/**
 * The maximum duration of a batch, in milliseconds. With several writers, one can commit records with numbers below those already checked, so a range
 * is checked again after this time.
 */
const batchMillis = 60_000

/** The maximum number of runs per iteration of the job, and the pauses after an iteration with or without written runs. */
const runsInTurn = 64
const pauseBusy = "200 millis"
const pauseIdle = "2 seconds"

interface TenantRow {
  readonly tenant_id: string
  readonly records: number
}

interface Parts extends Indexing {
  readonly sql: SqlClient
  readonly hasCompany: boolean
  readonly state: State
}

interface State {
  readonly waiting: Set<string>
  /** The last record that was checked; `undefined` until all tenants have been checked. */
  seen: number | undefined
  /** The ranges of records to check again, each with the time to do so. */
  again: Array<{ readonly from: number; readonly last: number; readonly at: number }>
}

export const make = Effect.fnUntraced(function* (indexing: Indexing) {
  const sql = yield* SqlClient
  const hasCompany = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
  const state: State = { waiting: new Set(), seen: undefined, again: [] }
  const write = writeOf({ ...indexing, sql, hasCompany, state })
  const turnOfJob = Effect.map(
    Effect.suspend(() => write(runsInTurn)),
    (made) => (made > 0 ? pauseBusy : pauseIdle)
  )
  // Other nodes' records might have become visible in another order, so all tenants are checked again.
  const takeOver = Effect.sync(() => {
    state.seen = undefined
    state.again = []
  })
  return { write, job: { name: indexing.name, turn: turnOfJob, takeOver } } satisfies BackgroundIndexerContract
})

const writeOf = (parts: Parts): BackgroundIndexerContract["write"] =>
  Effect.fnUntraced(function* (most) {
    const { sql, state, writeRun, written } = parts
    yield* Effect.orDie(find(parts))
    let left = most
    for (const tenant of state.waiting) {
      const [row] = yield* Effect.orDie(
        sql<TenantRow>`SELECT tenant_id, ${sql.literal(recordsOf("t.tenant_id"))} AS records FROM (SELECT ${tenant} AS tenant_id) t`
      )
      const runs = due(row?.records ?? 0, yield* Effect.orDie(written(sql, tenant)))
      for (const run of runs.slice(0, left)) yield* Effect.catchTag(writeRun(tenant, run), "SqlError", Effect.die)
      if (runs.length > left) return most
      left -= runs.length
      state.waiting.delete(tenant)
    }
    return most - left
  })

/** Finds the tenants that might have a newly due run since the last check. */
const find = Effect.fnUntraced(function* (parts: Parts) {
  const { hasCompany, sql, state } = parts
  const [row] = yield* sql<{ readonly seq: number | null }>`SELECT MAX(seq) AS seq FROM tollgate_usage_records`
  const last = row?.seq ?? 0
  const now = yield* Clock.currentTimeMillis
  if (state.seen === undefined) yield* findAll(parts)
  else if (last > state.seen) {
    yield* findBehind(parts, state.seen, last)
    if (hasCompany) state.again.push({ from: state.seen, last, at: now + batchMillis })
  }
  state.seen = last
  const due = state.again.filter(({ at }) => at <= now)
  state.again = state.again.filter(({ at }) => at > now)
  for (const { from, last } of due) yield* findBehind(parts, from, last)
})

const findAll = Effect.fnUntraced(function* ({ sql, state }: Parts) {
  for (let last: string | undefined = ""; last !== undefined;) {
    const tenants: ReadonlyArray<TenantRow> =
      yield* sql<TenantRow>`SELECT tenant_id, ${sql.literal(recordsOf("t.tenant_id"))} AS records
        FROM (
          SELECT id AS tenant_id FROM tollgate_usage_tenants WHERE id > ${last} ORDER BY id LIMIT ${tenantsInPiece}
        ) t`
    for (const { records, tenant_id } of tenants) {
      if (records >= runSize) state.waiting.add(tenant_id)
    }
    last = tenants.at(-1)?.tenant_id
    yield* turn
  }
})

/** Finds the tenants with a run that ends with one of these records. */
const findBehind = ({ sql, state }: Parts, from: number, last: number) =>
  inSlices(
    { from: from + 1, to: last + 1 },
    ({ from, to }) =>
      Effect.map(
        sql<{ readonly tenant_id: string }>`SELECT tenant_id FROM tollgate_usage_records
            WHERE seq >= ${from} AND seq < ${to} AND number % ${runSize} = 0`,
        (rows) => {
          for (const { tenant_id } of rows) state.waiting.add(tenant_id)
        }
      ),
    recordsInPiece
  )
