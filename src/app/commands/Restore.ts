/** `tollgate restore`: replaces the database with a backup. */
import { Command, Options } from "@effect/cli"
import { Clock, Console, Effect } from "effect"
import * as DataFolder from "../DataFolder.ts"
import * as Backup from "../../books/copies/Backup.ts"
import { verify } from "../Checks.ts"
import * as ServiceLock from "../../storage/sqlite/ServiceLock.ts"
import { fileOf } from "./Database.ts"
import { fromEnvironment } from "./Report.ts"

export const command = Command.make(
  "restore",
  { from: Options.text("from").pipe(Options.withDescription("a file that tollgate backup created")) },
  ({ from }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const file = yield* fileOf(facts, "pg_restore")
      yield* DataFolder.make(facts)
      yield* ServiceLock.lock(file)
      const previous = yield* Backup.restore(from, file, yield* Clock.currentTimeMillis, verify)
      yield* DataFolder.keepPrivate(facts)
      yield* Console.log(
        `restored ${facts.database.shown} from ${from}` +
          (previous === undefined ? "" : `; the previous database is now at ${previous}`)
      )
    }).pipe(Effect.scoped)
).pipe(Command.withDescription("Replace the database with a backup; the service must be stopped"))
