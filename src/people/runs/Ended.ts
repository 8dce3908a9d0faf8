/**
 * Ends runs that have expired or lost their API key, and deletes old runs. Authentication rejects the keys of expired and keyless runs even without
 * this job.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Duration, Effect } from "effect"
import { budgetsOf } from "../../books/ledger/Budgets.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { ApplicationId, RunId, TenantId } from "../../kernel/Ids.ts"
import type * as Loop from "../../kernel/Loop.ts"
import type { ApplicationsContract } from "../tenants/Applications.ts"
import { within } from "./RunRow.ts"

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly applications: Pick<ApplicationsContract, "deletedAmong">
}

/** How long runs are retained after their top run ends. */
export const retention = Duration.toMillis(Duration.days(30))
/** The retention of runs without calls. Creating runs is free, so they could otherwise accumulate for 30 days. */
const retentionUnused = Duration.toMillis(Duration.hours(1))
const pause = Duration.minutes(1)

/** The maximum number of rows changed per transaction. */
const rowsMax = 500

export const make = (dependencies: Dependencies): Loop.Job => {
  /** Unused runs that ended before this time are already deleted, or are left to `deleteOld`. */
  let checked = 0
  return {
    name: "runs",
    turn: Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* endExpired(dependencies, now)
      yield* endChildren(dependencies, now)
      yield* endKeyless(dependencies, now)
      const until = now - retentionUnused
      // A new process starts an hour earlier. This first iteration is slow only if very many runs ended in that hour.
      yield* deleteUnused(dependencies, Math.max(checked, until - retentionUnused), until, now)
      checked = until
      return (yield* deleteOld(dependencies, now)) ? Duration.zero : pause
    })
  }
}

/** Changes the selected runs in batches, one per transaction. */
const changeAll = Effect.fnUntraced(function* (
  { sql, writer }: Dependencies,
  which: Fragment,
  change: (ids: Fragment) => Parameters<typeof statement>[0]
): Effect.fn.Return<void, BooksUnavailable> {
  for (;;) {
    const rows = yield* Effect.orDie(
      sql<{ readonly id: RunId }>`SELECT id FROM tollgate_runs WHERE ${which} LIMIT ${sql.literal(String(rowsMax))}`
    )
    if (rows.length === 0) return
    const ids = JSON.stringify(rows.map(({ id }) => id))
    yield* Statements.write(writer, statement(change(sql`(SELECT value FROM json_each(${ids}))`)))
    if (rows.length < rowsMax) return
  }
})

const endExpired = (dependencies: Dependencies, now: number) => {
  const { sql } = dependencies
  return changeAll(
    dependencies,
    sql`ended_at IS NULL AND expires_at <= ${now}`,
    (ids) => sql`UPDATE tollgate_runs SET ended_at = expires_at WHERE ended_at IS NULL AND id IN ${ids}`
  )
}

/** Ends runs that were created while their parent was ending. Their keys were never accepted. */
const endChildren = (dependencies: Dependencies, now: number) => {
  const { sql } = dependencies
  return changeAll(
    dependencies,
    sql`ended_at IS NULL AND level > 1
      AND EXISTS (SELECT 1 FROM tollgate_runs above WHERE above.id = tollgate_runs.parent AND above.ended_at IS NOT NULL)`,
    (ids) => sql`UPDATE tollgate_runs SET ended_at = ${now} WHERE ended_at IS NULL AND id IN ${ids}`
  )
}

const endKeyless = Effect.fnUntraced(function* (dependencies: Dependencies, now: number) {
  const { applications, sql } = dependencies
  const keys = yield* Effect.orDie(
    sql<{ readonly id: ApplicationId }>`SELECT DISTINCT +application_id AS id FROM tollgate_runs WHERE ended_at IS NULL`
  )
  const deleted = yield* applications.deletedAmong(keys.map(({ id }) => id))
  if (deleted.length === 0) return
  const open = sql`ended_at IS NULL AND application_id IN (SELECT value FROM json_each(${JSON.stringify(deleted)}))`
  yield* changeAll(
    dependencies,
    open,
    (ids) => sql`UPDATE tollgate_runs SET ended_at = ${now} WHERE ended_at IS NULL AND id IN ${ids}`
  )
})

/** The maximum number of trees deleted per iteration. */
const treesMax = 50

/** Deletes old run trees. Returns whether more trees may remain. */
const deleteOld = Effect.fnUntraced(function* (dependencies: Dependencies, now: number) {
  const { sql } = dependencies
  const tops = yield* Effect.orDie(
    sql<Top>`SELECT id, path, tenant_id, ended_at FROM tollgate_runs
      WHERE level = 1 AND ended_at IS NOT NULL AND ended_at < ${now - retention} ORDER BY ended_at LIMIT ${sql.literal(String(treesMax))}`
  )
  let deleted = false
  for (const top of tops) if (yield* deleteTree(dependencies, top, now)) deleted = true
  return deleted
})

interface Top {
  readonly id: RunId
  readonly path: string
  readonly tenant_id: TenantId
  readonly ended_at: number
}

/**
 * Deletes trees without calls if their top run ended between `from` and `until`. A call of any run in a tree also counts against the top run's
 * budget.
 */
const deleteUnused = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  from: number,
  until: number,
  now: number
) {
  const { sql } = dependencies
  let last = { ended_at: from, id: "" }
  for (;;) {
    const tops = yield* Effect.orDie(
      sql<Top>`SELECT id, path, tenant_id, ended_at FROM tollgate_runs
        WHERE level = 1 AND ended_at IS NOT NULL AND ended_at >= ${last.ended_at} AND ended_at < ${until}
          AND (ended_at > ${last.ended_at} OR id > ${last.id})
        ORDER BY ended_at, id LIMIT ${sql.literal(String(rowsMax))}`
    )
    const ids = tops.map(({ id }) => id)
    const used = new Set(
      (yield* budgetsOf(sql, ids, now)).filter(({ requests }) => requests > 0).map(({ id }) => id as string)
    )
    for (const top of tops) if (!used.has(top.id)) while (yield* deleteTree(dependencies, top, now));
    if (tops.length < rowsMax) return
    last = tops.at(-1)!
  }
})

/**
 * Deletes up to `rowsMax` runs of a tree with their budgets, lowest level first, unless one of them has an open call. Returns whether it deleted any
 * run.
 */
const deleteTree = Effect.fnUntraced(function* (
  { sql, writer }: Dependencies,
  { path, tenant_id: tenant }: Top,
  now: number
) {
  const rows = yield* Effect.orDie(
    sql<{ readonly id: RunId }>`SELECT id FROM tollgate_runs WHERE ${within(sql, path)}
      ORDER BY path DESC LIMIT ${sql.literal(String(rowsMax))}`
  )
  if (rows.length === 0) return false
  const ids = rows.map(({ id }) => id)
  if ((yield* budgetsOf(sql, ids, now)).some(({ open, reserved }) => open > 0 || reserved > 0n)) return false
  const account = Ids.billingAccountOf(tenant)
  const ending = (id: RunId) =>
    ({ _tag: "SetBudget", id, kind: "run", anchor: id, tenant, account, terms: null }) as const
  yield* Effect.catchTags(
    writer.submit({
      postings: ids.map(ending),
      statements: [
        statement(sql`DELETE FROM tollgate_runs WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`)
      ]
    }),
    { AccountMissing: Effect.die, Conflict: Effect.die }
  )
  return true
})
