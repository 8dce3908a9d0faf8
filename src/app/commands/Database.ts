/** The database that a command works on. */
import { Effect, FiberRef, Layer, LogLevel } from "effect"
import * as DataFolder from "../DataFolder.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as Database from "../entry/database.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import { refuse } from "./Report.ts"

/**
 * Brings the database up to date, if it is not: alone, since an upgrade changes tables that a service of an earlier version goes on
 * writing to. Answers what was applied.
 */
export const upgrade = (facts: EnvironmentFacts, applied: number) =>
  Effect.gen(function* () {
    if (applied < Engine.newest(facts.database)) {
      yield* Effect.catchTag(Engine.lock(facts.database), "AlreadyServed", () =>
        refuse(
          `${facts.database.shown} must be brought up to date first, and an earlier version is serving it: stop that, or use its own command`
        )
      )
    }
    return yield* Engine.migrate(facts.database)
  }).pipe(Effect.scoped)

/** The database that there is, up to date: for a command beside a running service or without one. No command but `migrate` makes one. */
export const upToDate = (facts: EnvironmentFacts) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const applied = yield* DataFolder.appliedMigration(facts)
      yield* DataFolder.keepPrivate(facts)
      yield* upgrade(facts, applied)
    })
  )

/** Why it could not be written the command says in a sentence of its own: the log of its writer is not shown, but for `LOG_LEVEL=debug`. */
export const database = (facts: EnvironmentFacts) =>
  Database.layerAt(facts.database).pipe(
    LogLevel.lessThan(facts.log_level, LogLevel.Info)
      ? (layer) => layer
      : Layer.locally(FiberRef.currentMinimumLogLevel, LogLevel.None),
    Layer.provide(upToDate(facts))
  )

/** The file of the books, for what is done to files; `instead` is the tool of those who have them on a PostgreSQL server. */
export const fileOf = ({ database }: EnvironmentFacts, instead: string) =>
  database.engine === "sqlite"
    ? Effect.succeed(database.path)
    : refuse(`${database.shown} is no file: use ${instead}, or what its provider has for it`)
