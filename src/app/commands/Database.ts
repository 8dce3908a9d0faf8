/** Opens the database for a command. */
import { Duration, Effect, FiberRef, Layer, LogLevel } from "effect"
import * as DataFolder from "../DataFolder.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as Database from "../entry/database.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import { cacheLifetime } from "../../people/tenants/KeyCallers.ts"
import { refuse } from "./Report.ts"

/**
 * Applies the missing migrations and returns them. Requires exclusive use of the database if any are missing, because a running earlier version would
 * write to the tables that the migrations change.
 */
export const upgrade = (facts: EnvironmentFacts, applied: number) =>
  Effect.gen(function* () {
    if (applied < Engine.newest(facts.database)) {
      yield* Effect.catchTag(Engine.lock(facts.database), "AlreadyServed", () =>
        refuse(
          `${facts.database.shown} must be upgraded first, but an earlier version is using it; stop that version, or run its own copy of this command`
        )
      )
    }
    return yield* Engine.migrate(facts.database)
  }).pipe(Effect.scoped)

/** Upgrades an existing database, even while a service of this version is running. Only `migrate` creates a new database. */
export const upToDate = (facts: EnvironmentFacts) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const applied = yield* DataFolder.appliedMigration(facts)
      yield* DataFolder.keepPrivate(facts)
      yield* upgrade(facts, applied)
    })
  )

/** Provides the database. The layer logs only at `LOG_LEVEL=debug`, because the command reports failures itself. */
export const database = (facts: EnvironmentFacts) =>
  Database.layerAt(facts.database).pipe(
    LogLevel.lessThan(facts.log_level, LogLevel.Info)
      ? (layer) => layer
      : Layer.locally(FiberRef.currentMinimumLogLevel, LogLevel.None),
    Layer.provide(upToDate(facts))
  )

/** Returns the database file, for commands that work on files. `instead` is the name of the equivalent tool for PostgreSQL. */
export const fileOf = ({ database }: EnvironmentFacts, instead: string) =>
  database.engine === "sqlite"
    ? Effect.succeed(database.path)
    : refuse(`${database.shown} is not a file; use ${instead} or your provider's backup tool`)

/**
 * Returns a sentence that states when a running service applies a change: on SQLite when its cache expires, on PostgreSQL when it is notified
 * (`storage/engine/Signals`).
 */
export const noticedBy = ({ database }: EnvironmentFacts): string =>
  database.engine === "sqlite"
    ? `a running service applies the change within ${Duration.toMinutes(cacheLifetime)} min`
    : "running nodes are notified and apply the change immediately; a node that misses the notification applies it within 2 s"
