/** The command line as a process: one command, run to its end. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { exitCode, run } from "../Cli.ts"

// What it makes is for its own user only: the database holds other people's money.
process.umask(0o077)

// Whoever reads what is printed may have seen enough (`| head`): that is no failure of the command.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
  })
}

run(process.argv).pipe(
  Effect.provide(NodeContext.layer),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    disablePrettyLogger: true,
    teardown: (exit, onExit) => onExit(exitCode(exit, process.argv))
  })
)
