/**
 * One process serves a database. The lock is one that the operating system gives back when the process ends, however it ends:
 * an exclusive transaction on a file beside the database. Operator commands do not take it, and may run meanwhile.
 */
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import type { Scope } from "effect"

/** Another process serves the database. */
export interface AlreadyServed {
  readonly _tag: "AlreadyServed"
  readonly message: string
}

export const lock = (database: string): Effect.Effect<void, AlreadyServed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const db = new Sqlite(`${database}.lock`, { timeout: 0 })
        db.exec("BEGIN EXCLUSIVE")
        return db
      },
      catch: (): AlreadyServed => ({
        _tag: "AlreadyServed",
        message: `another process is serving ${database}; stop it first, or choose another DATA_DIR`
      })
    }),
    (db) => Effect.sync(() => db.close())
  ).pipe(Effect.asVoid)
