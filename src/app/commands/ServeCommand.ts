/** Defines the command `serve` for the command-line library. */
import { Command, Options } from "@effect/cli"
import { Option } from "effect"
import { serve } from "./Serve.ts"

const config = Options.text("config").pipe(
  Options.withDescription("the configuration file; without it, the service runs as a sandbox"),
  Options.optional
)

const workers = Options.text("workers").pipe(
  Options.withDescription("how many processes answer requests, on SQLite; the default is one process for everything"),
  Options.optional
)

export const command = Command.make("serve", { config, workers }, ({ config, workers }) =>
  serve({ config: Option.getOrUndefined(config), workers: Option.getOrUndefined(workers) })
).pipe(Command.withDescription("Run the service until it is stopped; after SIGTERM, open calls can still finish"))
