/**
 * The database: the connection that reads, and the migrations that run before anything else does. Everything that changes
 * the database afterwards goes through the ledger's `Writer`.
 */
import * as Migrator from "@effect/sql/Migrator"
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Layer } from "effect"
import ledger from "./migrations/0001_ledger.ts"
import identity from "./migrations/0002_identity.ts"
import mail from "./migrations/0003_mail.ts"
import organisations from "./migrations/0004_organisations.ts"
import pooling from "./migrations/0005_pooling.ts"
import transfers from "./migrations/0006_transfers.ts"
import explain from "./migrations/0007_explain.ts"
import idempotency from "./migrations/0008_idempotency.ts"
import media from "./migrations/0009_media.ts"
import payments from "./migrations/0010_payments.ts"
import clients from "./migrations/0011_clients.ts"

/** Append only: a database that has applied one never looks at it again. The table is ours, so a host's migrations stay its own. */
export const migrations = {
  "0001_ledger": ledger,
  "0002_identity": identity,
  "0003_mail": mail,
  "0004_organisations": organisations,
  "0005_pooling": pooling,
  "0006_transfers": transfers,
  "0007_explain": explain,
  "0008_idempotency": idempotency,
  "0009_media": media,
  "0010_payments": payments,
  "0011_clients": clients
}

const table = "tollgate_migrations"

/** Applies what is missing; answers the names of what it applied. */
export const migrate = Migrator.make({})({ loader: Migrator.fromRecord(migrations), table })

const migrated = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient
    // In WAL mode the default of NORMAL may lose the last commits with the power.
    yield* sql`PRAGMA synchronous = FULL`
    yield* migrate
  })
)

/** A migrated SQLite file, for reading. */
export const layer = (file: string) => {
  const client = SqliteClient.layer({ filename: file })
  const readOnly = Layer.effectDiscard(Effect.flatMap(SqlClient, (sql) => sql`PRAGMA query_only = ON`))
  return readOnly.pipe(Layer.provide(migrated), Layer.provideMerge(client))
}

/** A fresh, migrated database in memory. It is for reading and writing: the writer shares the connection. */
export const layerMemory = Layer.provideMerge(migrated, SqliteClient.layer({ filename: ":memory:" }))

/** Migrates a file and lets go of it; answers what was applied. */
export const migrateFile = (file: string) => Effect.provide(migrate, SqliteClient.layer({ filename: file }))
