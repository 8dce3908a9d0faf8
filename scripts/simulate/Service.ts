/**
 * The service's part of the simulation, in a separate bundle (`Bundle`): the process as `tollgate serve` assembles it, the outside world, and the
 * verification of the database.
 */
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Exit, Fiber, Layer, Logger, LogLevel, Redacted, Scope } from "effect"
import type { Scheduler } from "effect"
import { verify } from "../../src/app/Checks.ts"
import { service } from "../../src/app/commands/Process.ts"
import { failure } from "../../src/books/gate/Gate.ts"
import * as Calls from "../../src/books/ledger/Calls.ts"
import { interrupted } from "../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../src/books/ledger/write/Writer.ts"
import * as Config from "../../src/app/Config.ts"
import type { EnvironmentFacts } from "../../src/app/Environment.ts"
import * as NodeServer from "../../src/http/server/NodeServer.ts"
import * as Levers from "../../src/sandbox/Levers.ts"
import * as Sandbox from "../../src/sandbox/Sandbox.ts"
import { CurrentSandbox } from "../../src/kernel/SandboxInfo.ts"
import { sqliteFile } from "../../src/storage/database/Location.ts"

export type World = Sandbox.Sandbox

/** The initial credit is small, so some users exhaust it. */
const prices = { default_new_credits: 0.04, default_registration_credits: 0.01 }

export interface ServiceOptions {
  readonly world: World
  readonly scheduler: Scheduler.Scheduler
  readonly file: string
  readonly data_dir: string
  readonly port: number
  readonly log: (level: string, message: string) => void
  /**
   * Called when the service is ready. `lapse` releases all open calls without a hold, as another node would after this node's lease has lapsed.
   */
  readonly onReady: (lapse: () => void) => void
  /** Called when the process would end: the service did not start, failed or was shut down. */
  readonly onEnd: (why: string) => void
}

const keeping = (upstreams: World["configuration"]["upstreams"]) =>
  Object.fromEntries(Object.entries(upstreams ?? {}).map(([name, one]) => [name, { ...one, keeps_responses: true }]))

/** Creates the outside world, which lasts for the whole simulation. */
export const makeWorld = (scheduler: Scheduler.Scheduler, onMade: (world: World) => void): void => {
  const scope = Effect.runSync(Scope.make())
  Effect.runFork(
    Effect.matchCauseEffect(Scope.extend(Sandbox.make({}), scope), {
      onFailure: (cause) => Effect.die(new Error(`the world could not be created: ${String(cause)}`)),
      onSuccess: (world) => Effect.sync(() => onMade(world))
    }),
    { scheduler }
  )
}

const loggerOf = (log: ServiceOptions["log"]) =>
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ cause, logLevel, message }) => {
      const text = [message].flat().map(String).join(" ")
      log(logLevel.label, cause._tag === "Empty" ? text : `${text}: ${String(cause).split("\n")[0]}`)
    })
  )

/** Starts the service. The returned function shuts it down. */
export const start = ({
  data_dir,
  file,
  log,
  onEnd,
  onReady,
  port,
  scheduler,
  world
}: ServiceOptions): (() => void) => {
  const facts: EnvironmentFacts = {
    host: "127.0.0.1",
    port,
    data_dir,
    database: sqliteFile(file),
    service_name: undefined,
    key_prefix: "svc",
    log_level: LogLevel.Warning,
    sandbox_without: [],
    secret: Redacted.make("a secret of thirty-two characters")
  }
  const { client_id, control, issuer, levers, oauth_client, service_client_id } = world
  const info = { client_id, control, issuer, oauth_client, service_client_id }
  const program = Effect.gen(function* () {
    const configuration = yield* Config.decodeFile(
      { ...world.configuration, prices, upstreams: keeping(world.configuration.upstreams) },
      "the simulation's configuration"
    )
    return yield* Effect.gen(function* () {
      const { url } = yield* NodeServer.Listening
      world.connect(yield* Levers.make, url)
      const lapse = yield* lapsing
      onReady(() => void Effect.runFork(lapse, { scheduler }))
      return yield* Effect.never
    }).pipe(
      Effect.provide(service(facts, configuration).pipe(Layer.provide(Layer.succeed(CurrentSandbox, { info, levers }))))
    )
  })
  const fiber = Effect.runFork(
    Effect.provide(program, Layer.merge(loggerOf(log), Logger.minimumLogLevel(LogLevel.Warning))),
    { scheduler }
  )
  fiber.addObserver((exit) => onEnd(Exit.isSuccess(exit) ? "it ended" : String(exit.cause).split("\n")[0]!))
  return () => void Effect.runFork(Fiber.interrupt(fiber), { scheduler })
}

/** Creates the effect that ends every open call without a hold, as interrupted and free of charge. The call's host continues it. */
const lapsing = Effect.gen(function* () {
  const writer = yield* Writer
  const calls = yield* Calls.make
  const release = (call: string) =>
    writer.submit({
      postings: [{ _tag: "Settle", call, payer: undefined, outcome: { ...failure(interrupted), latency_ms: 0 } }],
      statements: []
    })
  return Effect.gen(function* () {
    const runs = (yield* calls.runs).filter((run) => !run.startsWith("held"))
    const open = (yield* Effect.forEach(runs, calls.ofRun)).flat()
    // If the database fails, the call is not released.
    yield* Effect.forEach(open, (call) => Effect.ignore(release(call)), { discard: true })
  }).pipe(Effect.catchAllCause(() => Effect.void))
})

/** Verifies a database file that no service uses. Returns a sentence for each problem. */
export const look = (file: string, scheduler: Scheduler.Scheduler): Promise<ReadonlyArray<string>> =>
  new Promise((resolve, reject) => {
    Effect.runFork(Effect.provide(verify, SqliteClient.layer({ filename: file })), { scheduler }).addObserver((exit) =>
      Exit.isSuccess(exit)
        ? resolve(exit.value.map(({ check, message }) => `${check}: ${message}`))
        : reject(new Error(String(exit.cause)))
    )
  })
