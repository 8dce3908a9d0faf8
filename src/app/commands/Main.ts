/** Runs one command as a process. `serve` with no options except `--config` does not load the command-line library. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { serveArguments } from "./ServeArguments.ts"
import { exitCode, reported } from "./Report.ts"
import * as Serve from "./Serve.ts"

// Makes new files private to this user, because the database contains other people's money.
process.umask(0o077)

// If the reader closes the pipe (`| head`), the command has not failed.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
  })
}

const serveOptions = serveArguments(process.argv.slice(2))
const command =
  serveOptions === undefined
    ? Effect.flatMap(
        Effect.promise(() => import("./Cli.ts")),
        ({ run }) => run(process.argv)
      )
    : reported(Serve.serve(serveOptions))

command.pipe(
  NodeRuntime.runMain({
    disableErrorReporting: true,
    disablePrettyLogger: true,
    teardown: (exit, onExit) => onExit(exitCode(exit, process.argv))
  })
)
