/**
 * Commands of the command line, run within the test: what a process does, without the half second that one takes to start. What the
 * process adds (its end, the bundle, the files that it makes) is tested by `command` of `Service.ts`, which starts one.
 */
import { ConfigProvider, Effect } from "effect"
import { format } from "node:util"
import { run } from "../../src/app/commands/Cli.ts"
import { exitCode } from "../../src/app/commands/Report.ts"
import { environmentOf } from "./Service.ts"
import type { Finished } from "./Service.ts"

/** A command's output: the text that it has printed, and what prints to it. */
const output = () => {
  const lines: Array<string> = []
  return {
    print: (...values: ReadonlyArray<unknown>): void => void lines.push(`${format(...values)}\n`),
    text: (): string => lines.join("")
  }
}

/** Runs a command to its end in this process, which must have no connection to the same database open. */
export const commandHere = async (args: ReadonlyArray<string>, env: Record<string, string> = {}): Promise<Finished> => {
  const argv = [process.execPath, "dist/main.js", ...args]
  const [stdout, stderr] = [output(), output()]
  const environment = (await environmentOf(env)) as Record<string, string>
  const umask = process.umask(0o077)
  try {
    const exit = await Effect.consoleWith((console) =>
      Effect.withConsole(run(argv), {
        ...console,
        log: (...values) => Effect.sync(() => stdout.print(...values)),
        error: (...values) => Effect.sync(() => stderr.print(...values)),
        unsafe: { ...console.unsafe, log: stdout.print, error: stderr.print }
      })
    ).pipe(
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(environment)))),
      Effect.runPromiseExit
    )
    return { code: exitCode(exit, argv), stdout: stdout.text(), stderr: stderr.text() }
  } finally {
    process.umask(umask)
  }
}
