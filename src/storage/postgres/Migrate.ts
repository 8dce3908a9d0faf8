/**
 * Brings a PostgreSQL database up to date, under a lock, so that of many nodes that start at once one does it.
 *
 * Nodes of two versions serve one database while an operator replaces them one by one. So tables change in two steps: a migration that
 * expands (tables, indexes, columns that may be missing from an insert) can be served by the version before; one that contracts (drops,
 * renames, demands) comes a version later, when no node uses what it removes. Each migration says the oldest version that can serve over
 * it, and the database keeps that, since a version knows nothing of the migrations after it:
 * - A version serves a database of a newer one, unless one of the migrations there asks for a newer version than it.
 * - A migration is refused while a node is at work that is older than it asks for.
 * - A node that finds later that it is too old (it was cut off when the migration ran) gives up its lease (`Leases`).
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Cause, Data, Effect, Schedule } from "effect"
import { migrationsTable as table } from "../database/Unusable.ts"
import { reasonOf, UpgradeFailed } from "../database/Unusable.ts"
import { isLostRace } from "./Faults.ts"
import { textOf } from "./Indexes.ts"
import { selectOldestNeeded, selectOlder } from "./Leases.ts"
import * as Locks from "./Locks.ts"
import { base, contracting, indexes, later } from "./Schema.ts"

export interface Migration {
  /** `0001_base`: a number, counted up without a gap, and a name. */
  readonly name: string
  /** The oldest version that can serve over it: the number of the newest migration that this version has. */
  readonly oldest: number
  readonly apply: Effect.Effect<unknown, SqlError, SqlClient>
}

const statements = (texts: ReadonlyArray<string>): Migration["apply"] =>
  Effect.flatMap(SqlClient, (sql) => Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true }))

/** In their order. They only append. */
export const migrations: ReadonlyArray<Migration> = [
  { name: "0001_base", oldest: 1, apply: statements(base) },
  ...Object.entries(later).map(([name, texts]) => ({
    name,
    oldest: contracting[name] ?? 1,
    apply: statements(texts)
  }))
]

/** Rows of an empty database beside those that its migrations make. */
const applyIndexes = statements(indexes.map((index) => textOf(index)))

const numberOf = ({ name }: Migration): number => Number.parseInt(name, 10)

/** The newest migration that there is. */
export const newest = Math.max(...migrations.map(numberOf))

/** How long a table is waited for that batches use: meanwhile every other batch waits behind it. */
const lockPatience = "2s"

/** A table may be about to change whose index is being built: the change would wait for that, and who writes for the change. */
class IndexUnderWay extends Data.TaggedError("IndexUnderWay")<{ readonly message: string }> {}

/**
 * Applies what is missing, all of it or nothing; answers the numbers and names of what it applied. `shown`: the database in messages. Indexes
 * of tables that are there already are built behind it (`Indexes`).
 */
export const migrate = (shown: string) => migrateBy(migrations, shown)

/** The same with other migrations than this version's. */
export const migrateBy = (all: ReadonlyArray<Migration>, shown: string) =>
  Effect.flatMap(SqlClient, (sql) => sql.withTransaction(apply(sql, all, shown))).pipe(
    // Another session holds a table for longer than a batch takes.
    Effect.retry({
      while: (error) => error instanceof IndexUnderWay || isHeld(error),
      schedule: Schedule.spaced("1 second"),
      times: 9
    }),
    Effect.catchAllCause((cause) => {
      const failure = Cause.squash(cause)
      return failure instanceof UpgradeFailed
        ? failure
        : new UpgradeFailed({
            message: `${shown} could not be brought up to date, and is as it was: ${reasonOf(cause)}`
          })
    })
  )

const isHeld = (error: unknown): boolean => {
  const { cause } = error as { readonly cause?: unknown }
  return isLostRace(cause) || (cause as { readonly code?: unknown } | undefined)?.code === "55P03"
}

const apply = Effect.fnUntraced(function* (sql: SqlClient, all: ReadonlyArray<Migration>, shown: string) {
  yield* sql`SET TRANSACTION READ WRITE`
  yield* sql.unsafe(`SELECT pg_advisory_xact_lock(${Locks.migration})`)
  yield* sql.unsafe(`SET LOCAL lock_timeout = '${lockPatience}'`)
  yield* sql.unsafe(`CREATE TABLE IF NOT EXISTS ${table} (
    migration_id integer PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), name text NOT NULL)`)
  const [found] = yield* sql.unsafe<{ id: number; oldest: number }>(selectOldestNeeded)
  const { id: applied, oldest } = found!
  const last = Math.max(...all.map(numberOf))
  if (oldest > last)
    return yield* new UpgradeFailed({
      message: `${shown} was made by a newer version (migration ${applied}, this one knows ${last}): run that`
    })
  const missing = all.filter((one) => numberOf(one) > applied)
  const needed = Math.max(0, ...missing.map((one) => one.oldest))
  const older = applied === 0 ? [] : yield* sql.unsafe<{ name: string }>(selectOlder, [needed])
  if (older.length > 0)
    return yield* new UpgradeFailed({
      message:
        `${shown} is served by ${older.map(({ name }) => name).join(", ")}, of a version that cannot serve it any more once it is brought up ` +
        `to date: run a version between these two everywhere first, or stop it (a node that was killed counts for 20 s)`
    })
  if (applied > 0 && missing.length > 0) {
    const [lock] = yield* sql.unsafe<{ free: 0 | 1 }>(`SELECT pg_try_advisory_xact_lock(${Locks.indexes}) AS free`)
    if (lock!.free !== 1)
      return yield* new IndexUnderWay({ message: "an index is being built there: start again when that is over" })
  }
  for (const one of missing) {
    yield* one.apply
    yield* sql.unsafe(`INSERT INTO ${table} (migration_id, name) VALUES (?, ?)`, [
      numberOf(one),
      one.name.slice(one.name.indexOf("_") + 1)
    ])
  }
  if (applied === 0) yield* applyIndexes
  // Behind the migration that adds the column.
  for (const one of missing)
    yield* sql.unsafe(`UPDATE ${table} SET oldest = ? WHERE migration_id = ?`, [one.oldest, numberOf(one)])
  return missing.map((one) => [numberOf(one), one.name.slice(one.name.indexOf("_") + 1)] as const)
})
