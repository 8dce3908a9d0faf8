/** `tollgate serve`: runs the service until it is stopped. Without a configuration file, it runs a sandbox. */
import { Effect, Runtime } from "effect"
import { noModel, readFile, servesSomething } from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import * as DataFolder from "../DataFolder.ts"
import { Deployment } from "../Deployment.ts"
import * as RunningAddress from "../RunningAddress.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import { redirectAddresses } from "../../people/auth/RedirectAddress.ts"
import * as NodeServer from "../../http/server/NodeServer.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import * as Hangup from "./Hangup.ts"
import { workerNumber } from "../workers/Number.ts"
import { service } from "./Process.ts"
import { fromEnvironment, refuse } from "./Report.ts"
import { workersMax, workersOf } from "./ServeArguments.ts"

export interface Served {
  readonly url: string
  readonly file: ConfigFile
}

export interface ServeOptions {
  readonly config: string | undefined
  readonly workers?: string | undefined
}

/** Serves a deployment. If a configuration file exists and there are no workers, runs `greet` as soon as the deployment accepts requests. */
export const serve = <E = never, R = never>(
  { config, workers }: ServeOptions,
  greet: (served: Served) => Effect.Effect<void, E, R> = () => Effect.void as Effect.Effect<void, E, R>
) =>
  Effect.gen(function* () {
    if (config !== undefined) Hangup.hear()
    const facts = yield* fromEnvironment
    const number = workerNumber()
    if (number !== undefined && config !== undefined) {
      const { serveWorker } = yield* Effect.promise(() => import("./ServeTogether.ts"))
      return yield* serveWorker(facts, config, number)
    }
    const count = yield* checkedWorkers(facts, config, workers)
    const file = config === undefined ? undefined : yield* readFile(config)
    if (file !== undefined && !servesSomething(file)) yield* Effect.logWarning(noModel(config!))
    yield* DataFolder.make(facts)
    const found = yield* Engine.lookPatiently(facts.database)
    yield* DataFolder.keepPrivate(facts)
    yield* Engine.lock(facts.database)
    if (found !== undefined) yield* Engine.awaitUnlocked(facts.database)
    if (count > 1) {
      const { serveOwner } = yield* Effect.promise(() => import("./ServeTogether.ts"))
      return yield* serveOwner(facts, config!, count, run)
    }
    return yield* file === undefined
      ? serveSandbox(facts)
      : Effect.scoped(
          Effect.provide(
            run(facts, file, greet),
            service(
              facts,
              file,
              Effect.suspend(() => readFile(config!))
            )
          )
        )
  }).pipe(Effect.scoped)

/** Returns the worker count. Fails for an invalid number and for a deployment that cannot have workers. */
const checkedWorkers = (facts: EnvironmentFacts, config: string | undefined, workers: string | undefined) => {
  const count = workersOf(workers)
  if (count === undefined) return refuse(`--workers ${workers}: must be a whole number from 1 to ${workersMax}`)
  if (count === 1) return Effect.succeed(count)
  if (config === undefined) return refuse("--workers needs --config FILE: a sandbox is a single process")
  if (facts.database.engine !== "sqlite")
    return refuse(
      "--workers is for SQLite: on PostgreSQL, start several nodes instead, each with its own PORT and NODE_NAME"
    )
  return process.platform === "win32"
    ? refuse("--workers does not work on Windows: its processes share a local socket")
    : Effect.succeed(count)
}

/** Runs in the process that the operator has started: announces the address, reloads, and waits for a signal. */
const run = <E, R>(facts: EnvironmentFacts, file: ConfigFile, greet: (served: Served) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const { url } = yield* NodeServer.Listening
    yield* Effect.logInfo(`serving at ${url}`)
    for (const { address, name } of redirectAddresses(file.identity, file.public_url ?? url))
      yield* Effect.logInfo(`the redirect URI for sign-in with ${name} is ${address}`)
    yield* reloading
    const store = yield* RunningAddress.note(facts, file.public_url ?? url)
    const { configuration, serving } = yield* Deployment
    serving.onReplaced(() => store(configuration().public_url ?? url))
    yield* greet({ url, file })
    return yield* Effect.never
  })

/** Reloads the configuration on SIGHUP. If the service rejects the new configuration, logs the reason. */
const reloading = Effect.gen(function* () {
  const { reload } = yield* Deployment
  const run = Runtime.runFork(yield* Effect.runtime<never>())
  yield* Effect.acquireRelease(
    Effect.sync(() => Hangup.answer(() => void run(Effect.ignore(reload)))),
    (end) => Effect.sync(end)
  )
})

/** Imports the sandbox dynamically, because a real deployment does not need it. */
const serveSandbox = (facts: EnvironmentFacts) =>
  Effect.flatMap(
    Effect.promise(() => import("./Sandbox.ts")),
    ({ serve }) => serve(facts)
  )
