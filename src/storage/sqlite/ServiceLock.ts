/**
 * The lock that only one process serving a database can hold. Operator commands do not acquire the lock, so they can run at the same time as the
 * service.
 *
 * Where the specification is silent:
 * - One process serves a database, and a second one is refused. `grant`, `verify` and all other commands except `restore` can run at the same time as
 *   the service. A command migrates an earlier version's database, but not while a service uses it. Before an upgrade, the file is copied to a file
 *   next to it. If a migration replaces a table, a host's own objects that refer to it are preserved.
 */
import { Data, Effect } from "effect"
import type { Scope } from "effect"
import * as Lock from "./Lock.ts"
import { faultOf, wordsOf } from "./Opening.ts"
import { DatabaseUnusable } from "../database/Unusable.ts"

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
