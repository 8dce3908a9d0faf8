/**
 * Starts the workers of `serve --workers` and replaces those that end. Node's cluster module gives each new connection to the next worker in turn. If
 * the owner ends, so do its workers: they lose their channel, and no new connection reaches them.
 */
import { Data, Effect, Layer, Runtime } from "effect"
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

interface Parts {
  readonly hub: Hub
  readonly log: (message: Effect.Effect<void>) => void
  readonly running: Map<number, Worker>
  /** Called with each worker that serves, and with each that ended. */
  readonly onListening: (at: Subjects.At, worker: number) => void
  readonly onExit: (how: string, worker: number) => void
}

/** Serves through this many workers. Provides their address once all of them accept requests. */
export const layer = (workers: number, hub: Hub) =>
  Layer.scoped(
    Listening,
    Effect.gen(function* () {
      const runtime = yield* Effect.runtime<never>()
      const log = (message: Effect.Effect<void>) => void Runtime.runFork(runtime)(message)
      const running = new Map<number, Worker>()
      const timers = new Set<NodeJS.Timeout>()
      const pauses = new Map<number, number>()
      const state = { closing: false, begun: false }
      setUp()

      const at = yield* Effect.acquireRelease(
        Effect.async<Subjects.At, WorkerFailed>((resume) => {
          const serving = new Set<number>()
          const parts: Parts = {
            hub,
            log,
            running,
            onListening: (at, worker) => {
              pauses.delete(worker)
              if (serving.add(worker).size < workers || state.begun) return
              state.begun = true
              resume(Effect.succeed(at))
            },
            onExit: (how, worker) => {
              hub.lapsed()
              if (state.closing) return
              if (!state.begun)
                return resume(new WorkerFailed({ message: `worker ${worker} ended ${how} before it served` }))
              const pause = pauses.get(worker) ?? pauseFirst
              pauses.set(worker, Math.min(2 * pause, pauseLast))
              log(Effect.logError(`worker ${worker} ended ${how} and is replaced in ${pause} ms`))
              const timer = setTimeout(() => {
                timers.delete(timer)
                start(parts, worker)
              }, pause)
              timers.add(timer)
            }
          }
          for (let worker = 1; worker <= workers; worker++) start(parts, worker)
        }).pipe(Effect.onError(() => stopAll(running, state, timers))),
        () => stopAll(running, state, timers)
      )
      return at
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

const start = ({ hub, onExit, onListening, running }: Parts, number: number): void => {
  const worker = cluster.fork({ [workerVariable]: String(number) })
  const further = hub.handlerOf(number)
  const channel = Channel.make(
    (message) => void worker.send(message),
    (subject) =>
      subject === Subjects.listening ? (value) => (onListening(value as Subjects.At, number), null) : further(subject)
  )
  running.set(number, worker)
  hub.channels.set(number, channel)
  worker.on("message", channel.receive)
  // A message to a process that has just ended. Its end is handled below.
  worker.on("error", () => {})
  worker.once("exit", (code, signal) => {
    channel.close()
    running.delete(number)
    hub.channels.delete(number)
    onExit(signal === null ? `with code ${code}` : `by ${signal}`, number)
  })
}

/** Lets the workers finish their open calls, and waits for them. */
const stopAll = (
  running: ReadonlyMap<number, Worker>,
  state: { closing: boolean },
  timers: ReadonlySet<NodeJS.Timeout>
): Effect.Effect<void> =>
  Effect.async((resume) => {
    state.closing = true
    for (const timer of timers) clearTimeout(timer)
    let left = running.size
    if (left === 0) return resume(Effect.void)
    const limit = setTimeout(() => {
      for (const worker of running.values()) worker.process.kill("SIGKILL")
    }, stopLimit)
    for (const worker of running.values()) {
      worker.once("exit", () => {
        if (--left > 0) return
        clearTimeout(limit)
        resume(Effect.void)
      })
      worker.process.kill("SIGTERM")
    }
  })
