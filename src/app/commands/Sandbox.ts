/**
 * Runs a service together with a simulated outside world, in the same process. The simulation starts first and provides the configuration. This
 * module is loaded only if there is no configuration file.
 *
 * Where the specification is silent:
 * - A sandbox stores its demo key in `DATA_DIR/demo.json`, because the service stores only hashes of keys.
 */
import { Console, Effect, Layer } from "effect"
import * as Config from "../Config.ts"
import * as RunningAddress from "../RunningAddress.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as NodeServer from "../../http/server/NodeServer.ts"
import { ConfigProblem } from "../../kernel/Setting.ts"
import { greet } from "../../sandbox/Greeting.ts"
import * as Levers from "../../sandbox/Levers.ts"
import * as Sandbox from "../../sandbox/Sandbox.ts"
import { CurrentSandbox } from "../../kernel/SandboxInfo.ts"
import { service } from "./Process.ts"

export const serve = (facts: EnvironmentFacts) =>
  Effect.gen(function* () {
    if (!isLoopback(facts.host)) {
      return yield* new ConfigProblem({
        message:
          `HOST: a sandbox listens only on loopback, not on ${facts.host}, because anyone can sign in to a sandbox. ` +
          "To serve other machines, use a configuration file (--config)."
      })
    }
    const sandbox = yield* Sandbox.make({ data_dir: facts.data_dir, without: facts.sandbox_without })
    const file = yield* Config.decodeFile(sandbox.configuration, "the sandbox's configuration")
    const { client_id, control, issuer, oauth_client, service_client_id } = sandbox
    const info = { issuer, control, client_id, service_client_id, oauth_client }
    return yield* Effect.gen(function* () {
      const { url } = yield* NodeServer.Listening
      sandbox.connect(yield* Levers.make, url)
      yield* RunningAddress.note(facts, url)
      yield* Effect.flatMap(greet({ url, data_dir: facts.data_dir, ...info }), Console.log)
      return yield* Effect.never
    }).pipe(
      Effect.scoped,
      Effect.provide(
        service(facts, file).pipe(Layer.provide(Layer.succeed(CurrentSandbox, { info, levers: sandbox.levers })))
      ),
      Effect.withClock(sandbox.clock)
    )
  })

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)
