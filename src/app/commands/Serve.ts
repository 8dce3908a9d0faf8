/** `tollgate serve`: runs the service until it is stopped. Without a configuration file, it runs a sandbox. */
import { Effect, Runtime } from "effect"
import { noModel, readFile, servesSomething } from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import * as DataFolder from "../DataFolder.ts"
import { Deployment } from "../Deployment.ts"
import type { Read } from "../Deployment.ts"
import * as RunningAddress from "../RunningAddress.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import { redirectAddresses } from "../../people/auth/RedirectAddress.ts"
import * as NodeServer from "../../http/server/NodeServer.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import * as Hangup from "./Hangup.ts"
import { service } from "./Process.ts"
import { fromEnvironment } from "./Report.ts"

/** A running deployment. */
export interface Served {
  readonly url: string
  readonly file: ConfigFile
}

/** Serves a deployment. Runs `greet` as soon as the deployment accepts requests. */
export const serve = <E = never, R = never>(
  config: string | undefined,
  greet: (served: Served) => Effect.Effect<void, E, R> = () => Effect.void as Effect.Effect<void, E, R>
) =>
  Effect.gen(function* () {
    if (config !== undefined) Hangup.hear()
    const facts = yield* fromEnvironment
    const file = config === undefined ? undefined : yield* readFile(config)
    if (file !== undefined && !servesSomething(file)) yield* Effect.logWarning(noModel(config!))
    yield* DataFolder.make(facts)
    const found = yield* Engine.lookPatiently(facts.database)
    yield* DataFolder.keepPrivate(facts)
    yield* Engine.lock(facts.database)
    if (found !== undefined) yield* Engine.awaitUnlocked(facts.database)
    return yield* file === undefined
      ? serveSandbox(facts)
      : serveDeployment(
          facts,
          file,
          Effect.suspend(() => readFile(config!)),
          greet
        )
  }).pipe(Effect.scoped)

const serveDeployment = <E, R>(
  facts: EnvironmentFacts,
  file: ConfigFile,
  read: Read,
  greet: (served: Served) => Effect.Effect<void, E, R>
) =>
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
  }).pipe(Effect.provide(service(facts, file, read)), Effect.scoped)

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
