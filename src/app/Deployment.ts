/**
 * Runs the services of a configuration and replaces them when the configuration changes.
 *
 * A reload rebuilds every service on the same database, writer, lease and port. New requests go to the new services, while the old services finish
 * their open requests and calls. The reload closes event streams, and their clients reconnect. The old loops stop as soon as the new services are
 * ready. The new loops take over the old services' work in their first iteration, and again once the old services have closed. An invalid
 * configuration changes nothing.
 *
 * Where the specification is silent:
 * - A process cannot see changes to its environment variables. An entry that refers to a new variable takes effect only after a restart.
 * - A reload resets the rate limit counters.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Context, Effect, Exit, Fiber, Layer, Runtime, Scope } from "effect"
import type { RequestListener } from "node:http"
import { isDeepStrictEqual } from "node:util"
import { domains, face, jobs } from "./App.ts"
import * as Config from "./Config.ts"
import type { ConfigFile } from "./Config.ts"
import type { EnvironmentFacts } from "./Environment.ts"
import { Gate } from "../books/gate/Gate.ts"
import { Face } from "../http/lanes/Face.ts"
import * as NodeServer from "../http/server/NodeServer.ts"
import { isOver, whenOver } from "../http/transport/Closed.ts"
import { ConfigProblem } from "../kernel/Setting.ts"
import { Handovers } from "../kernel/Loop.ts"
import type { HandoversContract } from "../kernel/Loop.ts"
import { ReloadRefused } from "../operations/operator/Problems.ts"
import { Reload } from "../operations/operator/Reload.ts"
import type { Reloaded } from "../operations/operator/Reload.ts"

/** An effect that reads the configuration again. */
export type Read = Effect.Effect<ConfigFile, ConfigProblem>

/** Extends a reload to other processes: takes this process's reload and returns the reload for signals and operators (`app/workers`). */
export type Together = (
  own: Effect.Effect<Reloaded, ReloadRefused>
) => Effect.Effect<Effect.Effect<Reloaded, ReloadRefused>>

const servicesOf = (facts: EnvironmentFacts, file: ConfigFile) =>
  face("").pipe(Layer.provideMerge(domains), Layer.provideMerge(Config.layer(facts, file)))

type Services = Layer.Layer.Success<ReturnType<typeof servicesOf>>

interface Running {
  readonly file: ConfigFile
  readonly services: Context.Context<Services>
  readonly request: RequestListener
  /** Starts the loops and returns an effect that stops them. */
  readonly loops: Effect.Effect<Effect.Effect<void>>
  /** Waits until no request and no call is open. */
  readonly idle: Effect.Effect<void>
  readonly end: Effect.Effect<void>
}

/** Creates a registry for the loops' `takeOver` callbacks. `tell` runs all of them after replaced services have closed. */
const handoverRegistry = (): { readonly handovers: HandoversContract; readonly tell: () => void } => {
  const loops = new Set<() => void>()
  return {
    handovers: {
      on: (takeOver) =>
        Effect.acquireRelease(
          Effect.sync(() => void loops.add(takeOver)),
          () => Effect.sync(() => void loops.delete(takeOver))
        )
    },
    tell: () => {
      for (const takeOver of loops) takeOver()
    }
  }
}

const build = Effect.fnUntraced(function* (facts: EnvironmentFacts, file: ConfigFile, handovers: HandoversContract) {
  const outer = yield* Effect.context<SqlClient>()
  const scope = yield* Scope.make()
  const memo = yield* Layer.makeMemoMap
  const services = yield* Layer.buildWithMemoMap(servicesOf(facts, file), memo, scope).pipe(
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
  )
  const { idle, request } = counted(yield* NodeServer.listenerOf(Context.get(services, Face)))
  const loops = Effect.gen(function* () {
    const turning = yield* Scope.make()
    const context = Context.add(Context.merge(outer, services), Handovers, handovers)
    yield* Effect.provide(Layer.buildWithMemoMap(jobs, memo, turning), context).pipe(
      Effect.onError((cause) => Scope.close(turning, Exit.failCause(cause)))
    )
    return turning
  }).pipe(
    Effect.orDie,
    Effect.map((turning) => Scope.close(turning, Exit.void))
  )
  return {
    file,
    services,
    request,
    loops,
    idle: Effect.zipRight(idle, Context.get(services, Gate).idle),
    end: Scope.close(scope, Exit.void)
  }
})

/** Counts open requests. `idle` waits until none is open. */
const counted = (serve: RequestListener): { readonly request: RequestListener; readonly idle: Effect.Effect<void> } => {
  let open = 0
  let onIdle: (() => void) | undefined
  const over = () => {
    if (--open === 0) onIdle?.()
  }
  return {
    request: (request, response) => {
      open++
      if (isOver(response)) over()
      else whenOver(response, over)
      serve(request, response)
    },
    idle: Effect.async<void>((resume) => {
      onIdle = () => resume(Effect.void)
      if (open === 0) onIdle()
    })
  }
}

/** Returns the names of the top-level entries that differ. */
const changedIn = (before: ConfigFile, now: ConfigFile): ReadonlyArray<string> =>
  Object.keys({ ...before, ...now }).filter(
    (name) => !isDeepStrictEqual(before[name as keyof ConfigFile], now[name as keyof ConfigFile])
  )

/** Entries of the HTTP server and the telemetry export. Only a restart applies changes to them. */
const restartOnly = ["answers", "telemetry"]

const refuseFixed = (changed: ReadonlyArray<string>): Effect.Effect<void, ConfigProblem> => {
  const unchangeable = restartOnly.filter((name) => changed.includes(name))
  return unchangeable.length === 0
    ? Effect.void
    : new ConfigProblem({ message: `${unchangeable.join(", ")}: restart the service to apply them` })
}

const refused = (cause: Cause.Cause<unknown>): ReloadRefused => {
  const failure = Cause.squash(cause)
  return new ReloadRefused({ message: failure instanceof Error ? failure.message : String(failure) })
}

/** Converts any failure of a reload to `ReloadRefused` and logs it. */
const asReloadRefused = <R>(reload: Effect.Effect<Reloaded, unknown, R>): Effect.Effect<Reloaded, ReloadRefused, R> =>
  Effect.catchAllCause(reload, (cause) => refused(cause)).pipe(
    Effect.tapErrorTag("ReloadRefused", ({ message }) =>
      Effect.logError(`the configuration was not reloaded and nothing has changed: ${message}`)
    )
  )

/** Waits until replaced services are idle, then closes them and notifies the loops. */
const retire = (one: Running, all: Array<Running>, handOver: () => void): Effect.Effect<void> =>
  one.idle.pipe(
    Effect.zipRight(Effect.suspend(() => Effect.sync(() => all.splice(all.indexOf(one), 1)))),
    Effect.zipRight(one.end),
    Effect.zipRight(Effect.sync(handOver))
  )

export class Deployment extends Context.Tag("tollgate/app/Deployment")<
  Deployment,
  {
    readonly serving: NodeServer.Serving
    readonly reload: Effect.Effect<Reloaded, ReloadRefused>
    readonly configuration: () => ConfigFile
    /** Notifies every gate that the process is shutting down. */
    readonly closing: Effect.Effect<void>
  }
>() {}

/** Starts the services. The layer also provides the services of the first configuration. */
export const layer = (
  facts: EnvironmentFacts,
  first: ConfigFile,
  read: Read | undefined,
  together: Together = Effect.succeed
) =>
  Layer.scopedContext(
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const turn = yield* Effect.makeSemaphore(1)
      const onReplaced: Array<() => void> = []
      const { handovers, tell: handOver } = handoverRegistry()
      /** The running services, oldest first. The last element serves new requests. */
      const all: Array<Running> = []
      let stopLoops: Effect.Effect<void> = Effect.void

      const replace = Effect.fnUntraced(function* (file: ConfigFile) {
        const before = all.at(-1)!
        const changed = changedIn(before.file, file)
        if (changed.length === 0) return { changed }
        yield* refuseFixed(changed)
        const next = yield* Effect.provideService(build(facts, file, handovers), Reload, reload)
        yield* stopLoops
        stopLoops = yield* Effect.onError(next.loops, () =>
          Effect.map(Effect.zipRight(next.end, before.loops), (stop) => {
            stopLoops = stop
          })
        )
        all.push(next)
        for (const tell of onReplaced) tell()
        yield* Effect.logInfo(`the configuration was reloaded: ${changed.join(", ")}`)
        yield* Effect.forkIn(retire(before, all, handOver), scope)
        return { changed }
      })

      const runtime = yield* Effect.runtime<Layer.Layer.Context<ReturnType<typeof servicesOf>>>()
      const localReload = (read: Read) =>
        Effect.flatMap(read, replace).pipe(
          asReloadRefused,
          turn.withPermits(1),
          // Runs on a fiber of the process, so that a disconnect does not interrupt it and loops do not log the request's id.
          (reloading) => Effect.suspend(() => Fiber.join(Runtime.runFork(runtime, reloading)))
        )
      const reload: Effect.Effect<Reloaded, ReloadRefused> =
        read === undefined ? yield* Reload : yield* together(localReload(read))

      yield* Effect.addFinalizer(() =>
        Effect.suspend(() =>
          Effect.zipRight(
            stopLoops,
            Effect.forEach(all, ({ end }) => end, { discard: true })
          )
        )
      )
      const begun = yield* Effect.provideService(build(facts, first, handovers), Reload, reload)
      all.push(begun)
      stopLoops = yield* begun.loops
      return Context.add(begun.services, Deployment, {
        serving: {
          request: (request, response) => all.at(-1)!.request(request, response),
          onReplaced: (then) => void onReplaced.push(then)
        },
        reload,
        configuration: () => all.at(-1)!.file,
        closing: Effect.suspend(() =>
          Effect.forEach(all, ({ services }) => Context.get(services, Gate).closing, { discard: true })
        )
      })
    })
  )
