/**
 * One process serves a database. The lock is one that the operating system gives back when the process ends, however it ends:
 * an exclusive transaction on a file beside the database. Operator commands do not take it, and may run meanwhile.
 */
import Sqlite from "better-sqlite3"
import { Data, Effect } from "effect"
import type { Scope } from "effect"
import { DatabaseUnusable, faultOf, wordsOf } from "./Opening.ts"

/** Another process serves the database. */
export class AlreadyServed extends Data.TaggedError("AlreadyServed")<{ readonly message: string }> {}

export const lock = (database: string): Effect.Effect<void, AlreadyServed | DatabaseUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const db = new Sqlite(`${database}.lock`, { timeout: 0 })
        try {
          db.exec("BEGIN EXCLUSIVE")
          return db
        } catch (error) {
          db.close()
          throw error
        }
      },
      catch: (error) =>
        faultOf(error)?.code === "SQLITE_BUSY"
          ? new AlreadyServed({
              message: `another process is serving ${database}; stop it first, or choose another DATA_DIR`
            })
          : new DatabaseUnusable({ message: wordsOf(`${database}.lock`, error) })
    }),
    (db) => Effect.sync(() => db.close())
  ).pipe(Effect.asVoid)
