/** The command line: the commands of an operator, how they are named and helped with, and what is said where one fails. */
import { CliConfig, Command, HelpDoc } from "@effect/cli"
import * as CommandDescriptor from "@effect/cli/CommandDescriptor"
import * as ValidationError from "@effect/cli/ValidationError"
import { Cause, Console, Effect, Exit, Layer, Logger, LogLevel, Option } from "effect"
import * as Backup from "./commands/Backup.ts"
import * as Client from "./commands/Client.ts"
import * as CommandLine from "./commands/CommandLine.ts"
import * as Grant from "./commands/Grant.ts"
import * as Health from "./commands/Health.ts"
import * as Key from "./commands/Key.ts"
import * as Migrate from "./commands/Migrate.ts"
import * as Owed from "./commands/Owed.ts"
import * as Purchase from "./commands/Purchase.ts"
import * as Reseal from "./commands/Reseal.ts"
import * as Restore from "./commands/Restore.ts"
import * as RotateKeys from "./commands/RotateKeys.ts"
import * as Serve from "./commands/Serve.ts"
import * as Tenants from "./commands/Tenants.ts"
import * as Verify from "./commands/Verify.ts"
import { refuse } from "./commands/Options.ts"
import { environment, variables } from "./Environment.ts"
import * as Opening from "./sql/Opening.ts"
import { version } from "./Version.ts"

const commands = [
  Serve.command,
  Grant.command,
  Purchase.command,
  Owed.command,
  Tenants.command,
  Client.command,
  Key.command,
  RotateKeys.command,
  Verify.command,
  Backup.command,
  Restore.command,
  Reseal.command,
  Migrate.command,
  Health.command
] as const

const tollgate = Command.make("tollgate").pipe(
  Command.withDescription("Metered access to AI models: who is calling, whether they can pay, what the call cost"),
  Command.withSubcommands(commands)
)

const namesOf = (
  some: ReadonlyArray<{ readonly descriptor: CommandDescriptor.Command<unknown> }>,
  below: CommandLine.Commands = {}
): CommandLine.Commands =>
  Object.fromEntries(
    some.flatMap(({ descriptor }) =>
      [...CommandDescriptor.getNames(descriptor)].map((name) => [name, below[name] ?? {}])
    )
  )

const allNames = namesOf(commands, { client: namesOf(Client.subcommands), key: namesOf(Key.subcommands) })

/** What is said below every help. */
const environmentHelp = HelpDoc.blocks([
  HelpDoc.h1("ENVIRONMENT"),
  HelpDoc.p(
    CommandLine.table(
      variables.map(([name, preset, meaning]) => [name, preset === "" ? meaning : `${meaning} (${preset})`])
    )
  ),
  HelpDoc.p("tollgate COMMAND --help says what a command takes.")
])

const cli = Command.run(tollgate, { name: "Tollgate", version, footer: environmentHelp })

const logging = (level: LogLevel.LogLevel) =>
  Layer.merge(
    Logger.replace(
      Logger.defaultLogger,
      Logger.withConsoleError(process.stderr.isTTY ? Logger.logfmtLogger : Logger.jsonLogger)
    ),
    Logger.minimumLogLevel(level)
  )

/**
 * Runs the command line. What the operator can mend is said in a line or two on stderr, and the exit code is 1. Logs go to stderr;
 * what is printed is plain where nobody sees colors.
 */
export const run = (argv: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const words = argv.slice(2)
    const twice = CommandLine.flags(words).find((flag, i, all) => all.indexOf(flag) !== i && flag !== "--redirect-uri")
    if (twice !== undefined) return yield* refuse(`${twice} is given twice`)
    const { known, name, unknown } = CommandLine.meant(allNames, words)
    if (unknown !== undefined) return yield* refuse(`${name} has no command ${unknown}, it has ${known.join(", ")}`)
    // A command that needs the environment says itself what is wrong with it.
    const facts = Option.getOrUndefined(yield* Effect.option(environment))
    yield* cli(argv).pipe(
      Effect.catchAllCause((cause) => {
        if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
        const failure = Option.getOrUndefined(Cause.failureOption(cause))
        // The command line has said itself what is wrong with it.
        if (ValidationError.isValidationError(failure)) return refuse(`${name} --help says what it takes`)
        return Effect.zipRight(
          Effect.logDebug("the command failed", cause),
          refuse(wordsOf(failure ?? Cause.squash(cause), facts?.database ?? "the database"))
        )
      }),
      Effect.provide(Layer.merge(logging(facts?.log_level ?? LogLevel.Info), CliConfig.layer({ showBuiltIns: false })))
    )
  }).pipe(
    Effect.catchAll(({ message }) => Effect.zipRight(Console.error(`tollgate: ${message}`), Effect.fail("refused"))),
    CommandLine.plainly
  )

/** One sentence for what went wrong: its own, or what the database's error means. (`LOG_LEVEL=debug` shows where it was.) */
const wordsOf = (error: unknown, database: string): string => {
  const code = Opening.faultOf(error)?.code ?? ""
  if (code.startsWith("SQLITE_") && !isWorded(error)) return Opening.wordsOf(database, error)
  return error instanceof Error || isWorded(error) ? error.message : String(error)
}

/** An error that was made for whoever runs the command. */
const isWorded = (error: unknown): error is { readonly message: string } =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag !== "SqlError" && "message" in error

/** What the process ends with. A service that is told to stop has done what it was for; any other command that is stopped has not. */
export const exitCode = (exit: Exit.Exit<unknown, unknown>, argv: ReadonlyArray<string>): number =>
  Exit.isSuccess(exit) ? 0 : !Cause.isInterruptedOnly(exit.cause) ? 1 : argv[2] === "serve" ? 0 : 130
