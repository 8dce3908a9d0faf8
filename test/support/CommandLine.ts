/**
 * Runs commands in the test's process, because starting a process takes half a second. `command` in `Service.ts` starts a real process. Use it to
 * test the exit code, the bundle and the files that the command creates.
 */
import { ConfigProvider, Effect } from "effect"
import { format } from "node:util"
import { run } from "../../src/app/commands/Cli.ts"
import { exitCode } from "../../src/app/commands/Report.ts"
import { environmentOf } from "./Service.ts"
import type { Finished } from "./Service.ts"

/** A console that collects the printed text. */
const output = () => {
  const lines: Array<string> = []
  return {
    print: (...values: ReadonlyArray<unknown>): void => void lines.push(`${format(...values)}\n`),
    text: (): string => lines.join("")
  }
}

/** Runs a command in this process and waits for it. The process must have no open connection to the same database. */
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
