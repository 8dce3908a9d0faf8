/** `tollgate health`: whether the service is ready. */
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
      catch: () => refuse(`there is no response from ${url}`)
    }).pipe(Effect.timeoutFail({ duration: "5 seconds", onTimeout: () => refuse(`${url} does not respond`) }))
    if (status !== 200) return yield* refuse(`${url} answers ${status}`)
    yield* Console.log(`${url} answers 200`)
  })
).pipe(Command.withDescription("Ask the service at HOST and PORT whether it is ready; exit code 1 if it is not"))

/** The address to call if the service listens on all addresses. */
const anyAddress: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "::1" }
