/** The folders and files of a deployment: made where they are wanted, and kept from other users of the machine. */
import { Effect } from "effect"
import type { Scope } from "effect"
import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import type { EnvironmentFacts } from "./Environment.ts"
import { ConfigProblem } from "../kernel/Setting.ts"
import * as Files from "../storage/sqlite/Files.ts"
import * as Engine from "../storage/engine/Engine.ts"
import type { DatabaseUnusable } from "../storage/database/Unusable.ts"

/**
 * Keeps the data for the service's own user, from now on and when the scope is left. To be entered before the database is opened, once
 * it is known to be ours, and left after it.
 */
export const keepPrivate = (facts: EnvironmentFacts): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { done, left } = yield* Files.tighten(placeOf(facts))
    if (done.length > 0)
      yield* Effect.logWarning(`others could use what is private, and cannot any more: ${done.join(", ")}`)
    if (left.length > 0) yield* Effect.logWarning(`others can use what is private: ${left.join(", ")}`)
    yield* Effect.addFinalizer(() => Files.tighten(placeOf(facts)))
  })

/** The newest migration that the database has applied. Fails where there is no database that can be read and written. */
export const appliedMigration = (facts: EnvironmentFacts): Effect.Effect<number, ConfigProblem | DatabaseUnusable> =>
  Effect.filterOrFail(
    Engine.look(facts.database, { writing: true }),
    (found): found is number => found !== undefined && found > 0,
    (found) =>
      new ConfigProblem({
        message:
          found === undefined
            ? `there is no database at ${facts.database.shown}: are DATA_DIR and DATABASE_URL what the service has? (serve and migrate make one)`
            : `${facts.database.shown} holds no books yet (serve and migrate make them)`
      })
  )

const placeOf = ({ data_dir, database }: EnvironmentFacts): Files.Place => ({
  data_dir,
  database: database.engine === "sqlite" ? database.path : undefined
})

/** Makes the folders that data is kept in. */
export const make = ({ data_dir, database }: EnvironmentFacts): Effect.Effect<void, ConfigProblem> =>
  Effect.forEach(
    [
      ["DATA_DIR", data_dir],
      ...(database.engine === "sqlite" ? ([["DATABASE_URL", dirname(database.path)]] as const) : [])
    ] as const,
    ([entry, folder]) =>
      Effect.try({
        try: () => void mkdirSync(folder, { recursive: true, mode: 0o700 }),
        catch: (error) =>
          new ConfigProblem({ message: `${entry}: ${reasonOf(folder, error as NodeJS.ErrnoException)}` })
      }),
    { discard: true }
  )

const reasonOf = (folder: string, { code, message }: NodeJS.ErrnoException): string => {
  switch (code) {
    case "EEXIST":
    case "ENOTDIR":
      return `${folder} is no folder`
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return `${folder} may not be made by this user, or lies on a read-only disk`
    case "ENOSPC":
      return `${folder} could not be made: the disk is full`
    default:
      return `${folder} could not be made: ${message}`
  }
}
