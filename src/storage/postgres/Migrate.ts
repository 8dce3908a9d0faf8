/**
 * Migrates a PostgreSQL database. If several nodes start, a lock ensures that only one of them migrates it.
 *
 * While an operator replaces nodes one by one, nodes of two versions serve one database. Tables therefore change in two steps. A migration that
 * expands (tables, indexes, columns that inserts can omit) still allows the previous version to serve. A migration that contracts (drops, renames,
 * adds constraints) follows one version later, when no node uses the removed objects. Each migration declares the oldest version that can
 * serve after it. The database stores this version, because a version does not know later migrations.
 * - A version can serve a newer version's database unless one of the migrations applied to it requires a newer version.
 * - A migration is refused while a node runs an older version than the migration requires.
 * - A node that was disconnected during the migration and later finds itself too old ends its own run (`Leases`).
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
  /** The name: a consecutive number and words, such as `0001_base`. */
  readonly name: string
  /** The oldest version that can serve after this migration, as the number of that version's newest migration. */
  readonly oldest: number
  readonly apply: Effect.Effect<unknown, SqlError, SqlClient>
}

const statements = (texts: ReadonlyArray<string>): Migration["apply"] =>
  Effect.flatMap(SqlClient, (sql) => Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true }))

/** All migrations, in order. The list is append-only. */
export const migrations: ReadonlyArray<Migration> = [
  { name: "0001_base", oldest: 1, apply: statements(base) },
  ...Object.entries(later).map(([name, texts]) => ({
    name,
    oldest: contracting[name] ?? 1,
    apply: statements(texts)
  }))
]

/** Builds `indexes` in an empty database, together with its tables. */
const applyIndexes = statements(indexes.map((index) => textOf(index)))

const numberOf = ({ name }: Migration): number => Number.parseInt(name, 10)

/** The number of the newest migration. */
export const newest = Math.max(...migrations.map(numberOf))

/** How long to wait for a table that batches use. Other batches queue up during the wait. */
const lockPatience = "2s"

/** An index is being built. A change to its table would wait for the build, and all writers would wait for the change. */
class IndexUnderWay extends Data.TaggedError("IndexUnderWay")<{ readonly message: string }> {}

/**
 * Applies all missing migrations in one transaction and returns their numbers and names. `shown` is the database's name in messages. `Indexes` builds
 * the indexes of existing tables afterwards.
 */
export const migrate = (shown: string) => migrateBy(migrations, shown)

export const migrateBy = (all: ReadonlyArray<Migration>, shown: string) =>
  Effect.flatMap(SqlClient, (sql) => sql.withTransaction(apply(sql, all, shown))).pipe(
    // Retry if another session holds a table for longer than a batch takes, or while an index is being built.
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
            message: `${shown} could not be upgraded and is unchanged: ${reasonOf(cause)}`
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
      message: `${shown} was written by a newer version (migration ${applied}; this version knows ${last}): run that version`
    })
  const missing = all.filter((one) => numberOf(one) > applied)
  const needed = Math.max(0, ...missing.map((one) => one.oldest))
  const older = applied === 0 ? [] : yield* sql.unsafe<{ name: string }>(selectOlder, [needed])
  if (older.length > 0)
    return yield* new UpgradeFailed({
      message:
        `${shown} is served by ${older.map(({ name }) => name).join(", ")}, whose version cannot serve it after this migration: ` +
        `first run a version between these two everywhere, or stop these nodes (a node that was killed counts for 20 s)`
    })
  if (applied > 0 && missing.length > 0) {
    const [lock] = yield* sql.unsafe<{ free: 0 | 1 }>(`SELECT pg_try_advisory_xact_lock(${Locks.indexes}) AS free`)
    if (lock!.free !== 1)
      return yield* new IndexUnderWay({
        message: "an index is being built in it: start again when the build has finished"
      })
  }
  for (const one of missing) {
    yield* one.apply
    yield* sql.unsafe(`INSERT INTO ${table} (migration_id, name) VALUES (?, ?)`, [
      numberOf(one),
      one.name.slice(one.name.indexOf("_") + 1)
    ])
  }
  if (applied === 0) yield* applyIndexes
  // Write this last, because one of the migrations adds the column.
  for (const one of missing)
    yield* sql.unsafe(`UPDATE ${table} SET oldest = ? WHERE migration_id = ?`, [one.oldest, numberOf(one)])
  return missing.map((one) => [numberOf(one), one.name.slice(one.name.indexOf("_") + 1)] as const)
})
