/** `tollgate health`: checks whether the service is ready. */
import { Command } from "@effect/cli"
import { Console, Effect } from "effect"
import { hostOf } from "../Environment.ts"
import { fromEnvironment, refuse } from "./Report.ts"

export const command = Command.make("health", {}, () =>
  Effect.gen(function* () {
    const { host, port } = yield* fromEnvironment
    const url = `http://${hostOf(anyAddress[host] ?? host)}:${port}/readyz`
    const status = yield* Effect.tryPromise({
      try: async (signal) => (await fetch(url, { signal })).status,
      catch: () => refuse(`cannot connect to ${url}`)
    }).pipe(
      Effect.timeoutFail({ duration: "5 seconds", onTimeout: () => refuse(`${url} did not respond within 5 seconds`) })
    )
    if (status !== 200) return yield* refuse(`${url} returned ${status}`)
    yield* Console.log(`${url} returned 200`)
  })
).pipe(Command.withDescription("Check whether the service at HOST and PORT is ready; the exit code is 1 if it is not"))

/** The address to call when the service listens on all addresses. */
const anyAddress: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "::1" }
