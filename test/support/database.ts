/**
 * The database of a test in this process. It is SQLite in memory. With `TEST_DATABASE=postgres` it is a database on the tests' server. Each build of
 * `sql` gets a new database with empty tables.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { SqliteClient } from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Layer, Redacted } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { describe } from "vitest"
import * as PostgresWriter from "../../src/books/ledger/write/PostgresWriter.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import { connectionsPreset } from "../../src/storage/database/Location.ts"
import * as Client from "../../src/storage/postgres/Client.ts"
import * as Sql from "../../src/storage/sqlite/Sql.ts"
import * as Postgres from "./postgres.ts"

/** Whether tests use PostgreSQL. Use `it.skipIf(isPostgres)` to skip a test of SQLite-only behavior, and state the reason above it. */
export const isPostgres = Postgres.isWanted()

/** Tests of SQLite-only features: files, locks and permissions, the writer's thread, and migrations from earlier versions. */
export const describeSqlite = describe.skipIf(isPostgres)

/** Tests of PostgreSQL-only features. */
export const describePostgres = describe.runIf(isPostgres)

/** Lets readers write too, as in memory, because tests set up data with them. */
const connectTo = (url: string): Layer.Layer<SqlClient> =>
  Layer.orDie(
    Client.layer({
      url: Redacted.make(`${url}?options=-c%20default_transaction_read_only%3Doff`),
      ...connectionsPreset,
      readers: 4
    })
  )

let databases = 0

/** Unused databases. Emptying a database takes a third of the time that creating and dropping one takes. */
const unused: Array<string> = []

const take = async (): Promise<string> => {
  const name = unused.pop()
  if (name !== undefined) return Postgres.empty(name)
  return Postgres.databaseOf(`test_${process.pid}_${++databases}`, { migrated: true })
}

/** Databases in which a test has changed the tables. */
const changed = new Set<string>()

const fresh = Layer.unwrapScoped(
  Effect.acquireRelease(Effect.promise(take), (url) =>
    Effect.sync(() => {
      const name = new URL(url).pathname.slice(1)
      if (!changed.has(name)) unused.push(name)
    })
  ).pipe(Effect.map(connectTo))
)

export const sql: Layer.Layer<SqlClient> = isPostgres ? fresh : Layer.orDie(Sql.layerMemory)

/** The writer for `sql`. It needs the other services that `sql` provides besides the client. */
export const writer: Layer.Layer<Writer, never, SqlClient> = isPostgres
  ? (PostgresWriter.layer as unknown as Layer.Layer<Writer, never, SqlClient>)
  : Writer.layer

export const layer = Layer.provideMerge(writer, sql)

let bytes: Uint8Array | undefined

/** Creates a SQLite file with empty tables, unless it exists. The file is a copy of one that was migrated once. */
export const makeFile = (file: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (existsSync(file)) return Effect.void
    if (bytes !== undefined) return Effect.succeed(writeFileSync(file, bytes))
    const made = Effect.flatMap(SqliteClient, (sql) => sql.export)
    return Effect.map(Effect.orDie(Effect.provide(made, Sql.layerMemory)), (exported) => {
      bytes = exported
      writeFileSync(file, bytes)
    })
  })

/** A database that outlives its layers. `file` is a path in its own folder. The writer runs on a thread, beside the readers. */
export const sqlAt = (file: string): Layer.Layer<SqlClient> =>
  isPostgres
    ? Layer.unwrapEffect(
        Effect.map(
          Effect.promise(() => Postgres.databaseOf(dirname(file), { migrated: true })),
          connectTo
        )
      )
    : Layer.unwrapEffect(Effect.as(makeFile(file), Layer.orDie(Sql.layer(file))))

export const writerAt = (file: string): Layer.Layer<Writer, never, SqlClient> =>
  isPostgres ? writer : Writer.layerThread(file)

/** Runs statements without the tables' checks. This creates states that a damaged file or a manual change may leave. */
export const unchecked = (...statements: ReadonlyArray<string>): Effect.Effect<void, SqlError, SqlClient> =>
  Effect.flatMap(SqlClient, (sql) => {
    const run = (texts: ReadonlyArray<string>) => Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true })
    if (!isPostgres) return run(["PRAGMA ignore_check_constraints = ON", ...statements])
    return Effect.zipRight(
      sql.withTransaction(run([Postgres.takeChecks, ...statements, Postgres.giveChecksBack])),
      Effect.map(sql<{ name: string }>`SELECT current_database() AS name`, ([row]) => void changed.add(row!.name))
    )
  })

/** Creates a row trigger. `on` is like `AFTER UPDATE OF column ON table`. `body` contains the trigger's statements. */
export const trigger = (
  name: string,
  { body, on, when = "true" }: { readonly on: string; readonly when?: string; readonly body: string }
): Effect.Effect<void, SqlError, SqlClient> =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.forEach(
      isPostgres
        ? [
            `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN new; END $$`,
            `CREATE TRIGGER ${name} ${on} FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION ${name}()`
          ]
        : [`CREATE TRIGGER ${name} ${on} WHEN ${when} BEGIN ${body} END`],
      (text) => sql.unsafe(text),
      { discard: true }
    )
  )

/** Drops the folder's databases on the server. */
export const drop = async (folder: string): Promise<void> => {
  if (isPostgres) await Postgres.drop(folder)
}
