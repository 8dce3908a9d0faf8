/** `tollgate/database`: where the layers keep their books: a file, memory, or the SQLite database of a host. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Layer } from "effect"
import type { ConfigError, Effect, Redacted } from "effect"
import * as PostgresWriter from "../../books/ledger/PostgresWriter.ts"
import { Writer } from "../../books/ledger/Writer.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import { Indexes } from "../../storage/engine/Indexes.ts"
import type { Location, PostgresDatabase } from "../../storage/database/Location.ts"
import * as Postgres from "../../storage/postgres/Client.ts"
import * as Sql from "../../storage/sqlite/Sql.ts"
import type { UpgradeFailed } from "../../storage/database/Unusable.ts"
import { version } from "../../kernel/Version.ts"
import "./contracts.ts"

export { Writer } from "../../books/ledger/Writer.ts"
export { migrate } from "../../storage/sqlite/Sql.ts"
export { UpgradeFailed } from "../../storage/database/Unusable.ts"
export { verify } from "../Checks.ts"
export { postgresDatabase, sqliteFile } from "../../storage/database/Location.ts"
export type { Connections, Location, PostgresDatabase, SqliteFile } from "../../storage/database/Location.ts"
export type { Finding } from "../../books/ledger/Invariants.ts"

/**
 * A SQLite file of its own, migrated, with the writer on a thread of its own. For servers, one at a time: an upgrade changes tables
 * that an earlier version still writes to.
 */
export const layer = (file: string) => Writer.layerThread(file).pipe(Layer.provideMerge(Sql.layer(file)))

/**
 * A PostgreSQL database, migrated, that any number of nodes serve at the same time. `url`: `postgres://user:password@host/database`;
 * `node`: what this one is called, the host unless given; `connections`: how many it makes, and how long it waits.
 */
export const layerPostgres = (
  url: Redacted.Redacted,
  options: Pick<PostgresDatabase, "connections" | "node"> = {}
): Layer.Layer<Writer | SqlClient, UpgradeFailed | ConfigError.ConfigError | SqlError> => {
  const settings = { ...Engine.settingsOf({ url, ...options }), version, hasThread: true }
  const migrated = Layer.effectDiscard(Engine.migrate({ engine: "postgres", url, shown: "the database" }))
  return PostgresWriter.layer.pipe(Layer.provideMerge(Postgres.layer(settings)), Layer.provide(migrated))
}

/** The one or the other. */
export const layerAt = (
  location: Location
): Layer.Layer<Writer | SqlClient, Layer.Layer.Error<ReturnType<typeof layer>> | SqlError> =>
  location.engine === "sqlite" ? layer(location.path) : layerPostgres(location.url, location)

/** Builds the indexes that a version brings to large tables of a PostgreSQL database; `jobs` of `tollgate/http` do, too. */
export const layerJobs = Layer.provide(Indexes.layerJobs, Indexes.layer)

/** A fresh database in memory. For tests. */
export const layerMemory = Writer.layer.pipe(Layer.provideMerge(Sql.layerMemory))

/**
 * Inside a host's own SQLite database, by the host's client: tables and migrations beside the host's, under names that begin with
 * `tollgate_`. Everything that changes them goes through the writer; nothing else of the database is touched.
 */
export const layerOver: Layer.Layer<
  Writer,
  Effect.Effect.Error<ReturnType<typeof Sql.migrate>>,
  SqlClient
> = Writer.layer.pipe(Layer.provide(Layer.effectDiscard(Sql.migrate(undefined))))
