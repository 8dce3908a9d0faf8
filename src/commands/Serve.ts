/** `tollgate serve`: runs the service until it is told to stop; without a configuration file, as a sandbox. */
import { Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { readFile } from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import * as DataFolder from "../DataFolder.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as NodeServer from "../http/NodeServer.ts"
import * as Opening from "../sql/Opening.ts"
import * as ServiceLock from "../sql/ServiceLock.ts"
import { fromEnvironment } from "./Options.ts"
import { service } from "./Process.ts"

const config = Options.text("config").pipe(
  Options.withDescription("models, upstreams, identity providers and prices; without it, a sandbox is served"),
  Options.optional
)

export const command = Command.make("serve", { config }, ({ config }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const file = Option.isNone(config) ? undefined : yield* readFile(config.value)
    yield* DataFolder.make(facts)
    yield* Opening.look(facts.database, { writing: true })
    yield* DataFolder.keepPrivate(facts)
    yield* ServiceLock.lock(facts.database)
    return yield* file === undefined ? serveSandbox(facts) : serveDeployment(facts, file)
  }).pipe(Effect.scoped)
).pipe(Command.withDescription("Run the service until it is told to stop (SIGTERM lets what is under way finish)"))

const serveDeployment = (facts: EnvironmentFacts, file: ConfigFile) =>
  Effect.gen(function* () {
    const { url } = yield* NodeServer.Listening
    yield* Effect.logInfo(`serving at ${url}`)
    return yield* Effect.never
  }).pipe(Effect.provide(service(facts, file)))

/** Imported here, so that a deployment with a configuration file does not load it. */
const serveSandbox = (facts: EnvironmentFacts) =>
  Effect.flatMap(
    Effect.promise(() => import("./Sandbox.ts")),
    ({ serve }) => serve(facts)
  )
