/**
 * Starts the workers of `serve --workers` and replaces those that end. Node's cluster module gives each new connection to the next worker in turn. If
 * the owner ends, so do its workers: they lose their channel, and no new connection reaches them.
 */
import { Data, Deferred, Effect, Layer, Option, Runtime } from "effect"
import cluster from "node:cluster"
import type { Worker } from "node:cluster"
import { Listening } from "../../http/server/NodeServer.ts"
import { workerVariable } from "../commands/ServeArguments.ts"
import * as Channel from "./Channel.ts"
import type { Hub } from "./Hub.ts"
import * as Subjects from "./Subjects.ts"

/** A worker ended before it could serve. It has printed its error. */
export class WorkerFailed extends Data.TaggedError("WorkerFailed")<{ readonly message: string }> {}

/** The pause before a worker that ended is replaced, in milliseconds. It doubles from the first value to the last until a worker serves. */
const pauseFirst = 100
const pauseLast = 5_000

/** How long stopping waits for the workers' open calls, in milliseconds. It is longer than a worker's own limits together. */
const stopLimit = 60_000

interface Fleet {
  readonly hub: Hub
  readonly workers: number
  readonly log: (message: Effect.Effect<void>) => void
  /** Completes once all workers accept requests, or fails when one ends before that. */
  readonly ready: Deferred.Deferred<Subjects.At, WorkerFailed>
  readonly running: Map<number, Worker>
  /** The workers that accept requests. */
  readonly serving: Set<number>
  /** The pauses before the next start, by worker, and the timers of those that wait for it. */
  readonly pauses: Map<number, number>
  readonly timers: Set<NodeJS.Timeout>
  closing: boolean
}

/** Serves through this many workers. Provides their address once all of them accept requests. */
export const layer = (workers: number, hub: Hub) =>
  Layer.scoped(
    Listening,
    Effect.gen(function* () {
      const runtime = yield* Effect.runtime<never>()
      const fleet: Fleet = {
        hub,
        workers,
        log: (message) => void Runtime.runFork(runtime)(message),
        ready: yield* Deferred.make<Subjects.At, WorkerFailed>(),
        running: new Map(),
        serving: new Set(),
        pauses: new Map(),
        timers: new Set(),
        closing: false
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          setUp()
          for (let number = 1; number <= workers; number++) start(fleet, number)
        }),
        () => stopAll(fleet)
      )
      return yield* Deferred.await(fleet.ready)
    })
  )

/** Workers run this program with the same command line and flags. In the executable, Node repeats its path as the script's. */
const setUp = (): void => {
  const [, script = "", ...words] = process.argv
  const isExecutable = script === process.execPath
  cluster.setupPrimary(
    isExecutable ? { exec: words[0] ?? "", args: words.slice(1), execArgv: [] } : { exec: script, args: words }
  )
  cluster.schedulingPolicy = cluster.SCHED_RR
}

const start = (fleet: Fleet, number: number): void => {
  const { hub, running } = fleet
  const worker = cluster.fork({ [workerVariable]: String(number) })
  const further = hub.handlerOf(number)
  const channel = Channel.make(
    (message) => void worker.send(message),
    (subject) =>
      subject === Subjects.listening ? (value) => accepts(fleet, number, value as Subjects.At) : further(subject)
  )
  running.set(number, worker)
  hub.channels.set(number, channel)
  worker.on("message", channel.receive)
  // A message to a process that has just ended. Its end is handled below.
  worker.on("error", () => {})
  worker.once("exit", (code, signal) => {
    channel.close()
    running.delete(number)
    fleet.serving.delete(number)
    hub.channels.delete(number)
    hub.lapsed(number)
    ended(fleet, number, signal === null ? `with code ${code}` : `by ${signal}`)
  })
}

const accepts = ({ pauses, ready, serving, workers }: Fleet, number: number, at: Subjects.At): null => {
  pauses.delete(number)
  if (serving.add(number).size === workers) Deferred.unsafeDone(ready, Effect.succeed(at))
  return null
}

/** Replaces a worker, unless the first workers cannot serve. */
const ended = (fleet: Fleet, number: number, how: string): void => {
  const { closing, log, pauses, ready, timers } = fleet
  if (closing) return
  const failure = new WorkerFailed({ message: `worker ${number} ended ${how} before it served` })
  if (!isDone(ready)) return Deferred.unsafeDone(ready, failure)
  const pause = pauses.get(number) ?? pauseFirst
  pauses.set(number, Math.min(2 * pause, pauseLast))
  log(Effect.logError(`worker ${number} ended ${how} and is replaced in ${pause} ms`))
  const timer = setTimeout(() => {
    timers.delete(timer)
    start(fleet, number)
  }, pause)
  timers.add(timer)
}

const isDone = (ready: Fleet["ready"]): boolean => Option.isSome(Effect.runSync(Deferred.poll(ready)))

/** Lets the workers finish their open calls, and waits for them. */
const stopAll = (fleet: Fleet): Effect.Effect<void> =>
  Effect.async((resume) => {
    fleet.closing = true
    for (const timer of fleet.timers) clearTimeout(timer)
    const workers = [...fleet.running.values()]
    let left = workers.length
    if (left === 0) return resume(Effect.void)
    const limit = setTimeout(() => {
      for (const worker of workers) worker.process.kill("SIGKILL")
    }, stopLimit)
    for (const worker of workers) {
      worker.once("exit", () => {
        if (--left > 0) return
        clearTimeout(limit)
        resume(Effect.void)
      })
      worker.process.kill("SIGTERM")
    }
  })
