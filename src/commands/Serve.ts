/**
 * Serving: database, rooms and port, in the order in which they start; they stop in the reverse of it. Without a configuration
 * file it is a sandbox: the outside world is started first, and its addresses are the configuration.
 */
import { Console, Effect, Layer } from "effect"
import { domains, face, jobs, observers } from "../App.ts"
import * as Config from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import * as DataFolder from "../DataFolder.ts"
import * as Database from "../entry/database.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import { ConfigProblem } from "../kernel/Setting.ts"
import * as Telemetry from "../ops/Telemetry.ts"
import * as Secret from "../Secret.ts"
import * as V8 from "../V8.ts"
import { Loops } from "../ops/Loops.ts"
import { Metrics } from "../ops/Metrics.ts"
import { Readiness } from "../ops/Readiness.ts"
import { greet } from "../sandbox/Greeting.ts"
import * as Levers from "../sandbox/Levers.ts"
import * as Sandbox from "../sandbox/Sandbox.ts"
import { CurrentSandbox } from "../sandbox/SandboxInfo.ts"
import * as NodeServer from "../http/NodeServer.ts"
import * as Opening from "../sql/Opening.ts"
import * as ServiceLock from "../sql/ServiceLock.ts"

/** Serves until it is interrupted. */
export const serve = (facts: EnvironmentFacts, file: ConfigFile | undefined) =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* DataFolder.make(facts)
      yield* Opening.look(facts.database, { writing: true })
      yield* DataFolder.keepPrivate(facts)
      yield* ServiceLock.lock(facts.database)
      return yield* file === undefined ? serveSandbox(facts) : serveDeployment(facts, file)
    })
  )

/** The service on its port, over its database. */
const service = (facts: EnvironmentFacts, file: ConfigFile) =>
  NodeServer.layer(facts).pipe(
    Layer.tap(() => Effect.sync(V8.collectSoon)),
    Layer.provide(face("")),
    Layer.provide(jobs),
    Layer.provideMerge(domains),
    Layer.provide(Config.layer(facts, file)),
    Layer.provide(Secret.layer(facts)),
    Layer.provide(observers),
    Layer.provide(Metrics.layer),
    Layer.provide(Readiness.layer),
    Layer.provide(Loops.layer),
    Layer.provide(Layer.provide(Telemetry.layer(file), Config.serviceInfo(facts, file))),
    Layer.provideMerge(Database.layer(facts.database))
  )

const serveDeployment = (facts: EnvironmentFacts, file: ConfigFile) =>
  Effect.gen(function* () {
    const { url } = yield* NodeServer.Listening
    yield* Effect.logInfo(`serving at ${url}`)
    return yield* Effect.never
  }).pipe(Effect.provide(service(facts, file)))

const serveSandbox = (facts: EnvironmentFacts) =>
  Effect.gen(function* () {
    if (!isLoopback(facts.host)) {
      return yield* new ConfigProblem({
        message:
          `HOST: a sandbox listens on loopback only, not on ${facts.host}, since anyone can sign in to it. ` +
          "Serve the world with a configuration file (--config)."
      })
    }
    const sandbox = yield* Sandbox.make({ data_dir: facts.data_dir, without: facts.sandbox_without })
    const file = yield* Config.decodeFile(sandbox.configuration, "the sandbox's configuration")
    const { client_id, control, issuer, oauth_client, service_client_id } = sandbox
    const info = { issuer, control, client_id, service_client_id, oauth_client }
    return yield* Effect.gen(function* () {
      const { url } = yield* NodeServer.Listening
      sandbox.connect(yield* Levers.make, url)
      yield* Effect.flatMap(greet({ url, data_dir: facts.data_dir, ...info }), Console.log)
      return yield* Effect.never
    }).pipe(
      Effect.provide(
        service(facts, file).pipe(Layer.provide(Layer.succeed(CurrentSandbox, { info, levers: sandbox.levers })))
      ),
      Effect.withClock(sandbox.clock)
    )
  })

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)
