/** Operations that differ between engines, by the location of the books. */
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

/** The newest migration that there is of this engine. */
export const newest = (location: Location): number => (location.engine === "sqlite" ? Sql.newest : Migrate.newest)

/** The newest migration that is applied, 0 where there is nothing of ours; `undefined` where there is no file. Nothing is made or changed. */
export const look = (location: Location, use: Use): Effect.Effect<number | undefined, DatabaseUnusable> =>
  location.engine === "sqlite" ? SqliteOpening.look(location.path, use) : PostgresOpening.look(location, use)

/** Looks before it is served. A file that another process has locked is waited for. */
export const lookPatiently = (location: Location): Effect.Effect<number | undefined, DatabaseUnusable> =>
  location.engine === "sqlite"
    ? SqliteOpening.whenUnlocked(location.path, SqliteOpening.look(location.path, { writing: true, patience: 0 }))
    : PostgresOpening.look(location, {})

/** Waits until a file that is there can be written. It must be ours, and no other service may serve it. */
export const awaitUnlocked = (location: Location): Effect.Effect<void, DatabaseUnusable> =>
  location.engine === "sqlite"
    ? SqliteOpening.whenUnlocked(location.path, SqliteOpening.tryToWrite(location.path))
    : Effect.void

/** Applies what is missing, all of it or nothing; answers the names of what it applied. */
export const migrate = (location: Location) =>
  location.engine === "sqlite"
    ? Sql.migrateFile(location.path)
    : Effect.provide(
        Migrate.migrate(location.shown),
        // However long the rows of a large database take.
        Client.layer({ ...settingsOf(location), statementMillis: 0 })
      )

/**
 * Ends when every index is there; answers at once on SQLite, where migrations build them. Nodes may serve meanwhile. `report`: called now and
 * then with how far the server is.
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
                  : `${location.shown} can be served, but is slow without its index ${index}, which could not be built: ${reasonOf(Cause.fail(cause))}`
            })
        )
      )

/** One process serves a file; a server has as many as there are. */
export const lock = (location: Location): Effect.Effect<void, AlreadyServed | DatabaseUnusable, Scope.Scope> =>
  location.engine === "sqlite" ? ServiceLock.lock(location.path) : Effect.void

/** No process serves it, or this fails. A file is kept from everybody else until the scope is left. */
export const alone = (location: Location): Effect.Effect<void, AlreadyServed | DatabaseUnusable, Scope.Scope> =>
  location.engine === "sqlite" ? ServiceLock.lock(location.path) : PostgresOpening.unserved(location)

/** Why it could not be used, in one sentence that says what to do. */
export const wordsOf = (location: Location, error: unknown): string =>
  location.engine === "sqlite" ? SqliteOpening.wordsOf(location.path, error) : PostgresOpening.wordsOf(location, error)

/** Whether an error is the engine's own, for `wordsOf`. */
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

/** A connection that reads. */
export const reading = (location: Location) =>
  location.engine === "sqlite" ? Sql.layer(location.path) : Client.layer(settingsOf(location))
