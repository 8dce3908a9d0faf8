/**
 * The command line as a process: one command, run to its end. A service that is started with nothing but its configuration does not
 * load what reads other command lines.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { plain } from "./Plain.ts"
import { exitCode, reported } from "./Report.ts"
import * as Serve from "./Serve.ts"

// What it makes is for its own user only: the database holds other people's money.
process.umask(0o077)

// Whoever reads what is printed may have seen enough (`| head`): that is no failure of the command.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
  })
}

const asked = plain(process.argv.slice(2))
const command =
  asked === undefined
    ? Effect.flatMap(
        Effect.promise(() => import("./Cli.ts")),
        ({ run }) => run(process.argv)
      )
    : reported(Serve.serve(asked.config))

command.pipe(
  NodeRuntime.runMain({
    disableErrorReporting: true,
    disablePrettyLogger: true,
    teardown: (exit, onExit) => onExit(exitCode(exit, process.argv))
  })
)
