/**
 * One process serves a database: it has the lock beside it. Operator commands do not take it, and may run meanwhile.
 *
 * Where the specification is silent:
 * - One process serves a database; a second one is refused. `grant`, `verify` and the other commands may run beside it; `restore` may
 *   not. A command that finds a database of an earlier version brings it up to date, but not under a service that still runs it. A file
 *   that an upgrade changes is copied beside itself before. What a host has that refers to a table stays when the table is replaced.
 */
import { Data, Effect } from "effect"
import type { Scope } from "effect"
import * as Lock from "./Lock.ts"
import { faultOf, wordsOf } from "./Opening.ts"
import { DatabaseUnusable } from "../database/Unusable.ts"

/** Another process serves the database. */
export class AlreadyServed extends Data.TaggedError("AlreadyServed")<{ readonly message: string }> {}

export const lock = (database: string): Effect.Effect<void, AlreadyServed | DatabaseUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => Lock.take(`${database}.lock`, 0),
      catch: (error) =>
        faultOf(error)?.code === "SQLITE_BUSY"
          ? new AlreadyServed({
              message: `another process is serving ${database}; stop it first, or choose another DATA_DIR`
            })
          : new DatabaseUnusable({ message: wordsOf(`${database}.lock`, error) })
    }),
    (held) => Effect.sync(held.release)
  ).pipe(Effect.asVoid)
