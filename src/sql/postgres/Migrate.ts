/** Brings a PostgreSQL database up to date, under a lock, so that of many nodes that start at once one does it. */
import * as Migrator from "@effect/sql/Migrator"
import { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Effect } from "effect"
import { migrationsTable as table } from "../Opening.ts"
import { reasonOf, UpgradeFailed } from "../Sql.ts"
import * as Locks from "./Locks.ts"
import { base, later } from "./Schema.ts"

const run = (texts: ReadonlyArray<string>) =>
  Effect.flatMap(SqlClient, (sql) => Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true }))

const migrations = {
  "0001_base": run(base),
  ...Object.fromEntries(Object.entries(later).map(([name, texts]) => [name, run(texts)] as const))
}

/** The newest migration that there is. */
export const newest = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/** Applies what is missing, all of it or nothing; answers the names of what it applied. `shown`: the database in messages. */
export const migrate = (shown: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`SET TRANSACTION READ WRITE`
    yield* sql.unsafe(`SELECT pg_advisory_xact_lock(${Locks.migration})`)
    yield* sql.unsafe(`CREATE TABLE IF NOT EXISTS ${table} (
      migration_id integer PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), name text NOT NULL)`)
    const [applied] = yield* sql<{ id: number | null }>`SELECT max(migration_id) AS id FROM ${sql(table)}`
    if ((applied?.id ?? 0) > newest)
      return yield* new UpgradeFailed({
        message: `${shown} was made by a newer version (migration ${applied?.id}, this one knows ${newest}): run that`
      })
    return yield* Migrator.make({})({ loader: Migrator.fromRecord(migrations), table })
  }).pipe(
    (change) => Effect.flatMap(SqlClient, (sql) => sql.withTransaction(change)),
    Effect.catchAllCause((cause) => {
      const failure = Cause.squash(cause)
      return failure instanceof UpgradeFailed
        ? failure
        : new UpgradeFailed({
            message: `${shown} could not be brought up to date, and is as it was: ${reasonOf(cause)}`
          })
    })
  )
