/** `tollgate serve`: runs the service until it is told to stop; without a configuration file, as a sandbox. */
import { Effect, Option } from "effect"
import { readFile } from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import * as DataFolder from "../DataFolder.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as NodeServer from "../http/NodeServer.ts"
import * as Opening from "../sql/Opening.ts"
import * as ServiceLock from "../sql/ServiceLock.ts"
import { service } from "./Process.ts"
import { fromEnvironment } from "./Report.ts"

export const serve = (config: Option.Option<string>) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const file = Option.isNone(config) ? undefined : yield* readFile(config.value)
    yield* DataFolder.make(facts)
    yield* Opening.look(facts.database, { writing: true })
    yield* DataFolder.keepPrivate(facts)
    yield* ServiceLock.lock(facts.database)
    return yield* file === undefined ? serveSandbox(facts) : serveDeployment(facts, file)
  }).pipe(Effect.scoped)

/** What `serve` alone, or with a configuration file, asks for; `undefined` for everything that the command line has to look at. */
export const plain = (words: ReadonlyArray<string>): Option.Option<string> | undefined => {
  const [command, flag, path, ...more] = words
  if (command !== "serve" || more.length > 0) return undefined
  if (flag === undefined) return Option.none()
  return flag === "--config" && path !== undefined && !path.startsWith("-") ? Option.some(path) : undefined
}

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
