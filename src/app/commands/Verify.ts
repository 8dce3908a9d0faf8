/** `tollgate verify`: checks every invariant of the ledger and the usage records. */
import { Command, Options } from "@effect/cli"
import { SqlClient } from "@effect/sql/SqlClient"
import { Console, Effect } from "effect"
import { verifySince } from "../Checks.ts"
import { toIso } from "../../kernel/Moment.ts"
import type { Progress } from "../../books/ledger/audit/Checkpoint.ts"
import * as Verifications from "../../books/ledger/audit/Verifications.ts"
import * as Backup from "../../books/copies/Backup.ts"
import type { Location } from "../../storage/database/Location.ts"
import { database } from "./Database.ts"
import { json, printed } from "./Options.ts"
import { everyInterval } from "./Progress.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const since = Options.boolean("since").pipe(
  Options.withDescription("check only rows added since the last successful verification, or all rows if there was none")
)

export const progress = Effect.map(
  everyInterval,
  (print) =>
    ({ of, rows }: Progress) =>
      print((seconds) => `${rows} of ${of} entries and records after ${seconds} s`)
)

/** Verifies the database and stores the result there. Never writes to a damaged file. */
const verified = Effect.fnUntraced(function* (since: boolean, { engine }: Location) {
  const sql = yield* SqlClient
  const before = since ? yield* Verifications.lastClean(sql) : undefined
  const damage = before === undefined && engine === "sqlite" ? yield* Backup.damage : []
  if (damage.length > 0) return { findings: damage, before, millis: 0, kept: false }
  const verify = verifySince(before?.checkpoint, { progress: yield* progress })
  return { before, ...(yield* Verifications.runAndSave(before === undefined, verify)) }
})

export const command = Command.make("verify", { json, since }, ({ json, since }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const { before, findings, kept, millis } = yield* Effect.provide(verified(since, facts.database), database(facts))
    const from = before === undefined ? null : toIso(before.at)
    yield* json
      ? printed({ database: facts.database.shown, whole: findings.length === 0, findings, since: from, millis, kept })
      : Effect.forEach(findings, ({ check, message }) => Console.log(`${check}: ${message}`), { discard: true })
    if (findings.length > 0)
      return yield* refuse(`${findings.length} findings: the books of ${facts.database.shown} are wrong`)
    if (json) return
    yield* Console.log(
      `${facts.database.shown}: every invariant of the books holds` +
        (from === null ? "" : ` for the rows added since ${from}, when they last held`) +
        (kept ? "" : "; the result could not be recorded")
    )
  })
).pipe(
  Command.withDescription(
    "Check every invariant of the books on the live database, without delaying calls. Print any findings and exit with 1. Record the result, which /metrics shows"
  )
)
