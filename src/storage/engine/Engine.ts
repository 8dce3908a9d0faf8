/** The operations that differ between the engines. The location of the books determines the engine. */
import { Cause, Effect } from "effect"
import type { Scope } from "effect"
import { connectionsPreset } from "../database/Location.ts"
import type { Location, PostgresDatabase } from "../database/Location.ts"
import * as SqliteOpening from "../sqlite/Opening.ts"
import type { DatabaseUnusable, Use } from "../database/Unusable.ts"
import * as Client from "../postgres/Client.ts"
import * as Indexes from "../postgres/Indexes.ts"
import * as Migrate from "../postgres/Migrate.ts"
import * as PostgresOpening from "../postgres/Opening.ts"
import * as ServiceLock from "../sqlite/ServiceLock.ts"
import type { AlreadyServed } from "../sqlite/ServiceLock.ts"
import * as Sql from "../sqlite/Sql.ts"
import { reasonOf, UpgradeFailed } from "../database/Unusable.ts"

export const newest = (location: Location): number => (location.engine === "sqlite" ? Sql.newest : Migrate.newest)

/** Returns the newest applied migration: 0 if there is none, and `undefined` if the file does not exist. Changes nothing. */
export const look = (location: Location, use: Use): Effect.Effect<number | undefined, DatabaseUnusable> =>
  location.engine === "sqlite" ? SqliteOpening.look(location.path, use) : PostgresOpening.look(location, use)

/** Works like `look`, but checks for write permission and waits for a file that another process has locked. */
export const lookPatiently = (location: Location): Effect.Effect<number | undefined, DatabaseUnusable> =>
  location.engine === "sqlite"
    ? SqliteOpening.whenUnlocked(location.path, SqliteOpening.look(location.path, { writing: true, patience: 0 }))
    : PostgresOpening.look(location, {})

/**
 * Waits until an existing file is writable. The file must belong to the service, and no other process may be serving it. Does nothing on PostgreSQL.
 */
export const awaitUnlocked = (location: Location): Effect.Effect<void, DatabaseUnusable> =>
  location.engine === "sqlite"
    ? SqliteOpening.whenUnlocked(location.path, SqliteOpening.tryToWrite(location.path))
    : Effect.void

/** Applies all missing migrations in one transaction and returns their numbers and names. */
export const migrate = (location: Location) =>
  location.engine === "sqlite"
    ? Sql.migrateFile(location.path)
    : Effect.provide(
        Migrate.migrate(location.shown),
        // Set no timeout, because a large database can take a long time.
        Client.layer({ ...settingsOf(location), statementMillis: 0 })
      )

/**
 * Builds the missing indexes and waits until all are built. Nodes can serve meanwhile. Does nothing on SQLite, where migrations build the indexes.
 * `report` is called with the server's progress.
 */
export const completeIndexes = (
  location: Location,
  listener: Indexes.Listener,
  report: (progress: Indexes.Progress) => Effect.Effect<void>
) =>
  location.engine === "sqlite"
    ? Effect.void
    : Indexes.complete(listener, report).pipe(
        Effect.provide(Client.layer(settingsOf(location))),
        Effect.catchTag(
          "BuildFailed",
          ({ cause, index }) =>
            new UpgradeFailed({
              message:
                index === undefined
                  ? PostgresOpening.wordsOf(location, cause)
                  : `${location.shown} can be served, but is slow because its index ${index} could not be built: ${reasonOf(Cause.fail(cause))}`
            })
        )
      )

/** Acquires the lock that only one process serving a file can hold. Does nothing on PostgreSQL, where any number of nodes can serve. */
export const lock = (location: Location): Effect.Effect<void, AlreadyServed | DatabaseUnusable, Scope.Scope> =>
  location.engine === "sqlite" ? ServiceLock.lock(location.path) : Effect.void

/** Fails if a process is serving the database. A file stays locked until the scope closes. */
export const alone = (location: Location): Effect.Effect<void, AlreadyServed | DatabaseUnusable, Scope.Scope> =>
  location.engine === "sqlite" ? ServiceLock.lock(location.path) : PostgresOpening.unserved(location)

/** Describes the error in one sentence, with advice for the operator. */
export const wordsOf = (location: Location, error: unknown): string =>
  location.engine === "sqlite" ? SqliteOpening.wordsOf(location.path, error) : PostgresOpening.wordsOf(location, error)

/** Returns whether the engine raised the error, so that `wordsOf` can describe it. */
export const isFault = (location: Location, error: unknown): boolean =>
  location.engine === "sqlite"
    ? (SqliteOpening.faultOf(error)?.code ?? "").startsWith("SQLITE_")
    : PostgresOpening.faultOf(error) !== undefined

export const settingsOf = ({
  connections,
  node,
  url
}: Pick<PostgresDatabase, "connections" | "node" | "url">): Client.PostgresSettings => ({
  url,
  ...(node !== undefined && { node }),
  knows: Migrate.newest,
  ...connectionsPreset,
  ...connections
})

/** Provides a `SqlClient` for reading, and on PostgreSQL also `Postgres`. A SQLite file is migrated first. */
export const reading = (location: Location) =>
  location.engine === "sqlite" ? Sql.layer(location.path) : Client.layer(settingsOf(location))
