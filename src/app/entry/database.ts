/** `tollgate/database`: the database for the layers: a file, memory, a host's SQLite database or PostgreSQL. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Layer } from "effect"
import type { ConfigError, Effect, Redacted } from "effect"
import * as PostgresWriter from "../../books/ledger/write/PostgresWriter.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import { Indexes } from "../../storage/engine/Indexes.ts"
import type { Location, PostgresDatabase } from "../../storage/database/Location.ts"
import * as Postgres from "../../storage/postgres/Client.ts"
import * as Sql from "../../storage/sqlite/Sql.ts"
import type { UpgradeFailed } from "../../storage/database/Unusable.ts"
import { version } from "../../kernel/Version.ts"
import "./contracts.ts"

export { Writer } from "../../books/ledger/write/Writer.ts"
export { migrate } from "../../storage/sqlite/Sql.ts"
export { UpgradeFailed } from "../../storage/database/Unusable.ts"
export { verify } from "../Checks.ts"
export { postgresDatabase, sqliteFile } from "../../storage/database/Location.ts"
export type { Connections, Location, PostgresDatabase, SqliteFile } from "../../storage/database/Location.ts"
export type { Finding } from "../../books/ledger/rules/Check.ts"

/**
 * Provides a migrated SQLite file, with the writer on its own thread. Only one server may use the file, because an earlier version would write to the
 * tables that an upgrade changes.
 */
export const layer = (file: string) => Writer.layerThread(file).pipe(Layer.provideMerge(Sql.layer(file)))

/**
 * Provides a migrated PostgreSQL database for any number of nodes. `url` is `postgres://user:password@host/database`. `node` is this node's name and
 * defaults to the host. `connections` sets the number of connections and their timeouts.
 */
export const layerPostgres = (
  url: Redacted.Redacted,
  options: Pick<PostgresDatabase, "connections" | "node"> = {}
): Layer.Layer<Writer | SqlClient, UpgradeFailed | ConfigError.ConfigError | SqlError> => {
  const settings = { ...Engine.settingsOf({ url, ...options }), version, hasThread: true }
  const migrated = Layer.effectDiscard(Engine.migrate({ engine: "postgres", url, shown: "the database" }))
  return PostgresWriter.layer.pipe(Layer.provideMerge(Postgres.layer(settings)), Layer.provide(migrated))
}

export const layerAt = (
  location: Location
): Layer.Layer<Writer | SqlClient, Layer.Layer.Error<ReturnType<typeof layer>> | SqlError> =>
  location.engine === "sqlite" ? layer(location.path) : layerPostgres(location.url, location)

/** The loop that builds the indexes that a new version adds to large PostgreSQL tables. `jobs` of `tollgate/http` includes this loop. */
export const layerJobs = Layer.provide(Indexes.layerJobs, Indexes.layer)

/** A new database in memory, for tests. */
export const layerMemory = Writer.layer.pipe(Layer.provideMerge(Sql.layerMemory))

/**
 * Tables inside a host's own SQLite database, through the host's client. The names of tables and migrations start with `tollgate_`. All changes go
 * through the writer, and Tollgate touches no other table.
 */
export const layerOver: Layer.Layer<
  Writer,
  Effect.Effect.Error<ReturnType<typeof Sql.migrate>>,
  SqlClient
> = Writer.layer.pipe(Layer.provide(Layer.effectDiscard(Sql.migrate(undefined))))
