/** `tollgate serve` as a command of the command line. */
import { Command, Options } from "@effect/cli"
import { Option } from "effect"
import { serve } from "./Serve.ts"

const config = Options.text("config").pipe(
  Options.withDescription("models, upstreams, identity providers and prices; without it, a sandbox is served"),
  Options.optional
)

export const command = Command.make("serve", { config }, ({ config }) => serve(Option.getOrUndefined(config))).pipe(
  Command.withDescription("Run the service until it is told to stop (SIGTERM lets what is under way finish)")
)
