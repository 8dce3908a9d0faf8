/** Creates a deployment's folders, and keeps its files private to the user who runs the service. */
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
 * Makes the data private to the user who runs the service, now and again when the scope closes. The caller must first check that the data belongs to
 * this user. The scope must open before the database and close after it.
 */
export const keepPrivate = (facts: EnvironmentFacts): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { done, left } = yield* Files.tighten(placeOf(facts))
    if (done.length > 0) yield* Effect.logWarning(`removed other users' access to private files: ${done.join(", ")}`)
    if (left.length > 0) yield* Effect.logWarning(`other users have access to private files: ${left.join(", ")}`)
    yield* Effect.addFinalizer(() => Files.tighten(placeOf(facts)))
  })

/** Returns the database's newest migration. Fails if there is no database that can be read and written. */
export const appliedMigration = (facts: EnvironmentFacts): Effect.Effect<number, ConfigProblem | DatabaseUnusable> =>
  Effect.filterOrFail(
    Engine.look(facts.database, { writing: true }),
    (found): found is number => found !== undefined && found > 0,
    (found) =>
      new ConfigProblem({
        message:
          found === undefined
            ? `there is no database at ${facts.database.shown}; check that the service uses the same DATA_DIR and DATABASE_URL (serve and migrate create a database)`
            : `${facts.database.shown} has no tables yet (serve and migrate create them)`
      })
  )

export const placeOf = ({ data_dir, database }: EnvironmentFacts): Files.Place => ({
  data_dir,
  database: database.engine === "sqlite" ? database.path : undefined
})

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
      return `${folder} is not a folder`
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return `${folder} could not be created: this user has no permission, or the disk is read-only`
    case "ENOSPC":
      return `${folder} could not be created: the disk is full`
    default:
      return `${folder} could not be created: ${message}`
  }
}
