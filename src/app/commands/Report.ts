/** Provides a command's environment, log and error messages. */
import { Cause, Console, Effect, Exit, Layer, Logger, LogLevel, Option } from "effect"
import { describe, environment } from "../Environment.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import { ConfigProblem } from "../../kernel/Setting.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import type { Location } from "../../storage/database/Location.ts"
import * as CommandLine from "./CommandLine.ts"

/** Creates an error that the operator can fix. The message must explain how. */
export const refuse = (message: string) => new ConfigProblem({ message })

export const fromEnvironment: Effect.Effect<EnvironmentFacts, ConfigProblem> = Effect.mapError(environment, (error) =>
  refuse(`the environment is invalid:\n${describe(error)}`)
)

const logging = (level: LogLevel.LogLevel) =>
  Layer.merge(
    Logger.replace(
      Logger.defaultLogger,
      Logger.withConsoleError(process.stderr.isTTY ? Logger.logfmtLogger : Logger.jsonLogger)
    ),
    Logger.minimumLogLevel(level)
  )

/** Runs a command with its log on stderr. Prints an error to stderr without its stack and fails with `refused`. */
export const reported = <E, R>(command: Effect.Effect<void, E, R>): Effect.Effect<void, "refused", R> =>
  Effect.gen(function* () {
    // An invalid environment is ignored here, because a command that needs it reports the error itself.
    const facts = Option.getOrUndefined(yield* Effect.option(environment))
    yield* command.pipe(
      Effect.catchAllCause((cause) => {
        if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
        const failure = Option.getOrUndefined(Cause.failureOption(cause))
        return Effect.zipRight(
          Effect.logDebug("the command failed", cause),
          refuse(wordsOf(failure ?? Cause.squash(cause), facts?.database))
        )
      }),
      Effect.provide(logging(facts?.log_level ?? LogLevel.Info))
    )
  }).pipe(
    Effect.catchAll(({ message }) =>
      Effect.zipRight(Console.error(`tollgate: ${message}`), Effect.fail("refused" as const))
    ),
    CommandLine.plainly
  )

/** Returns the error's own message, or an explanation of a database error. The stack is logged only at `LOG_LEVEL=debug`. */
const wordsOf = (error: unknown, database: Location | undefined): string => {
  if (database !== undefined && Engine.isFault(database, error) && !isWorded(error))
    return Engine.wordsOf(database, error)
  return error instanceof Error || isWorded(error) ? error.message : String(error)
}

/** The tags of the platform's wrappers around database errors. */
const wrappers: ReadonlySet<unknown> = new Set(["SqlError", "UnknownException"])

/** Returns whether the error's message was written for operators. */
const isWorded = (error: unknown): error is { readonly message: string } =>
  typeof error === "object" && error !== null && "_tag" in error && !wrappers.has(error._tag) && "message" in error

/** Returns the exit code. An interrupted service exits with 0, any other interrupted command with 130. */
export const exitCode = (exit: Exit.Exit<unknown, unknown>, argv: ReadonlyArray<string>): number =>
  Exit.isSuccess(exit)
    ? 0
    : !Cause.isInterruptedOnly(exit.cause)
      ? 1
      : ["serve", "quickstart"].includes(argv[2] ?? "")
        ? 0
        : 130
