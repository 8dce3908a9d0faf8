/** Errors for databases that cannot be used or upgraded, for both engines, and the names of the tables with a database's state. */
import { Cause, Data } from "effect"

/** The database cannot be used. `is_locked` means that another process has locked the file. */
export class DatabaseUnusable extends Data.TaggedError("DatabaseUnusable")<{
  readonly message: string
  readonly is_locked?: boolean
}> {}

export const migrationsTable = "tollgate_migrations"

/** The table that records the progress of a copy. It exists only in the target of an unfinished copy. */
export const copyTable = "tollgate_sql_copy"

export const unfinishedCopy = (shown: string, source: string): DatabaseUnusable =>
  new DatabaseUnusable({
    message: `${shown} is an unfinished copy of ${source}; finish it (tollgate migrate --to, with the settings of the source), or use another one`
  })

export interface Use {
  readonly writing: boolean
  /** Whether the database is the target of a copy. The copy can be unfinished. */
  readonly copying?: boolean
  /** How long to wait for another process's lock on a file, in milliseconds; five seconds by default. The wait blocks the thread. */
  readonly patience?: number
}

/** Selects the source of an unfinished copy. */
export const selectSource = `SELECT value FROM ${copyTable} WHERE name = 'source'`

/** The upgrade failed, and the database is unchanged. The message is for the operator who starts the service. */
export class UpgradeFailed extends Data.TaggedError("UpgradeFailed")<{ readonly message: string }> {}

/** Returns the message of the innermost error. */
export const reasonOf = (cause: Cause.Cause<unknown>): string => {
  let error: unknown = Cause.squash(cause)
  while (error instanceof Error && error.cause !== undefined) error = error.cause
  return error instanceof Error ? error.message : String(error)
}
