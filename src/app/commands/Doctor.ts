/** `tollgate doctor`: checks the machine and the deployment, and suggests a remedy for each problem. */
import { Command, Options } from "@effect/cli"
import { Clock, Console, Effect, Option } from "effect"
import * as Config from "../Config.ts"
import * as Machine from "../check/Machine.ts"
import * as Probes from "../check/Probes.ts"
import type { Examined } from "../check/Machine.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as Secret from "../Secret.ts"
import { version } from "../../kernel/Version.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { json, printed } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const options = {
  config: Options.text("config").pipe(
    Options.withDescription("the configuration file; without it, no upstreams are tested"),
    Options.optional
  ),
  backups: Options.text("backups").pipe(
    Options.withDescription("the folder that contains the backups"),
    Options.optional
  ),
  json
}

/** Checks whether the secret decrypts the database's sealed values. Requires an up-to-date database, because the check opens it. */
const secret = (facts: EnvironmentFacts): Effect.Effect<Examined> =>
  Secret.fits(facts).pipe(
    Effect.provide(database(facts)),
    Effect.map((fits): Examined =>
      fits
        ? { subject: "secret", result: "ok", finding: `the secret matches ${facts.database.shown}` }
        : {
            subject: "secret",
            result: "failure",
            finding: `the secret does not match ${facts.database.shown}; restore the previous secret from your backup`
          }
    ),
    Effect.catchAllCause((): Effect.Effect<Examined> =>
      Effect.succeed({
        subject: "secret",
        result: "failure",
        finding: "the secret could not be tested; see the other findings"
      })
    )
  )

const reached = ({ address, entry, fault }: Probes.Probed): Examined =>
  fault === undefined
    ? { subject: entry, result: "ok", finding: address }
    : { subject: entry, result: "failure", finding: `${address} ${fault}` }

const shown = { ok: "ok", warning: "WARN", failure: "FAIL" } as const

export const command = Command.make("doctor", options, ({ backups, config, json }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const file = Option.isNone(config) ? undefined : yield* Config.readFile(config.value)
    const probes = file === undefined ? [] : yield* Probes.probe(file, process.env)
    const books = yield* Machine.database(facts)
    const findings: ReadonlyArray<Examined> = [
      Machine.runtime(version),
      Machine.permissions(facts),
      Machine.disk(facts),
      books,
      ...(books.result === "ok" ? [yield* secret(facts)] : []),
      ...(file === undefined
        ? []
        : [Machine.clock(probes.flatMap(({ date, now }) => (date === undefined ? [] : [{ date, now }])))]),
      Machine.backups(Option.getOrUndefined(backups), yield* Clock.currentTimeMillis),
      ...probes.map(reached)
    ]
    const failures = findings.filter(({ result }) => result === "failure").map(({ subject }) => subject)
    if (json) yield* printed({ ok: failures.length === 0, findings })
    else yield* Console.log(CommandLine.table(findings.map((one) => [shown[one.result], one.subject, one.finding])))
    if (failures.length > 0) return yield* refuse(`${failures.join(", ")}: see above`)
  })
).pipe(
  Command.withDescription(
    "Check permissions, disk, clock, secret, backups, versions and upstreams, and suggest remedies; the exit code is 1 if a check fails"
  )
)
