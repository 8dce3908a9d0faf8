/** `tollgate verify`: every invariant of the books. */
import { Command } from "@effect/cli"
import { Console, Effect, Layer } from "effect"
import * as Backup from "../sql/Backup.ts"
import { verify } from "../Checks.ts"
import * as Sql from "../sql/Sql.ts"
import { upToDate } from "./Database.ts"
import { fromEnvironment, json, printed, refuse } from "./Options.ts"

export const command = Command.make("verify", { json }, ({ json }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const findings = yield* Effect.provide(
      Backup.check(verify),
      Sql.layer(facts.database).pipe(Layer.provide(upToDate(facts)))
    )
    yield* json
      ? printed({ database: facts.database, whole: findings.length === 0, findings })
      : Effect.forEach(findings, ({ check, message }) => Console.log(`${check}: ${message}`), { discard: true })
    if (findings.length > 0)
      return yield* refuse(`${findings.length} findings: the books of ${facts.database} are not right`)
    if (!json) yield* Console.log(`${facts.database}: every invariant of the books holds`)
  })
).pipe(Command.withDescription("Check every invariant of the books on the live database, and name what is off"))
