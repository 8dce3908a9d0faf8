/** `tollgate backup`: copies the database to a file. */
import { Command, Options } from "@effect/cli"
import { Console, Effect } from "effect"
import * as DataFolder from "../DataFolder.ts"
import * as Backup from "../../books/copies/Backup.ts"
import { fileOf } from "./Database.ts"
import { fromEnvironment } from "./Report.ts"

export const command = Command.make(
  "backup",
  { to: Options.text("to").pipe(Options.withDescription("the file to create; it must not exist yet")) },
  ({ to }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      yield* DataFolder.appliedMigration(facts)
      yield* Backup.backup(yield* fileOf(facts, "pg_dump"), to)
      yield* Console.log(
        `copied ${facts.database.shown} to ${to}. The copy's keys and tokens are useless without the deployment's secret: ` +
          (facts.secret === undefined
            ? `store ${facts.data_dir}/secret with the copy.`
            : "store TOLLGATE_SECRET with the copy.")
      )
    })
).pipe(Command.withDescription("Copy the database while the service is running"))
