/**
 * Starts the workers of `serve --workers`, kills those that hang, and replaces those that end. The owner listens and gives each connection to the
 * next worker in turn (`Connections`). If the owner ends, its workers lose their channel to it and end too.
 */
import { Data, Deferred, Effect, Layer, Option, Runtime } from "effect"
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { createServer } from "node:net"
import type { AddressInfo, Server } from "node:net"
import type { Address } from "../../http/server/Address.ts"
import { listen, Listening, listeningAt } from "../../http/server/NodeServer.ts"
import * as Channel from "./Channel.ts"
import { Connections } from "./Connections.ts"
import type { Hub } from "./Hub.ts"
import { workerVariable } from "./Number.ts"
import * as Subjects from "./Subjects.ts"
import { watch } from "./Watch.ts"
import type { Watch } from "./Watch.ts"

/** A worker ended before it could serve. It has printed its error. */
export class WorkerFailed extends Data.TaggedError("WorkerFailed")<{ readonly message: string }> {}

/** The pause before a worker that ended is replaced, in milliseconds. It doubles from the first value to the last until a worker serves. */
const pauseFirst = 100
const pauseLast = 5_000

/** How long stopping waits for the workers' open calls, in milliseconds. It exceeds the sum of a worker's limits. */
const stopLimit = 60_000

/** Tells a worker how to serve. `address` is where the owner listens. */
export type Begin = (address: AddressInfo) => Subjects.Begun

export interface FleetOptions {
  readonly address: Address
  readonly workers: number
  readonly hub: Hub
  readonly begin: Begin
}

interface Fleet extends Omit<FleetOptions, "begin"> {
  readonly begun: () => Subjects.Begun
  readonly connections: Connections
  readonly log: (message: Effect.Effect<void>) => void
  /** Completes once all workers accept requests, or fails when one ends before that. */
  readonly ready: Deferred.Deferred<void, WorkerFailed>
  readonly running: Map<number, ChildProcess>
  /** The workers that accept requests. */
  readonly serving: Set<number>
  /** The serving workers' watches, by worker number. */
  readonly watches: Map<number, Watch>
  /** The restart delays, by worker number. */
  readonly pauses: Map<number, number>
  readonly timers: Set<NodeJS.Timeout>
  closing: boolean
}

/** Serves through workers. Provides the address once all of them accept requests. A connection waits until a worker takes it. */
export const layer = ({ begin, ...options }: FleetOptions) =>
  Layer.scoped(
    Listening,
    Effect.gen(function* () {
      const runtime = yield* Effect.runtime<never>()
      const connections = new Connections()
      const server = yield* Effect.acquireRelease(
        Effect.sync(() => createServer({ pauseOnConnect: true }, (socket) => connections.give(socket))),
        (server) =>
          Effect.sync(() => {
            server.close()
            connections.close()
          })
      )
      const at = yield* listen(server, options.address)
      const fleet: Fleet = {
        ...options,
        begun: () => begin(at),
        connections,
        log: (message) => void Runtime.runFork(runtime)(message),
        ready: yield* Deferred.make<void, WorkerFailed>(),
        running: new Map(),
        serving: new Set(),
        watches: new Map(),
        pauses: new Map(),
        timers: new Set(),
        closing: false
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          for (let number = 1; number <= options.workers; number++) start(fleet, number)
        }),
        () => stopAll(fleet, server)
      )
      yield* Deferred.await(fleet.ready)
      return listeningAt(at)
    })
  )

/** Runs this program again with the same command line and flags. In the executable, Node repeats its path as the script's. */
const run = (number: number): ChildProcess => {
  const [program = "", script = "", ...words] = process.argv
  const command = script === process.execPath ? words : [...process.execArgv, script, ...words]
  return spawn(program, command, {
    env: { ...process.env, [workerVariable]: String(number) },
    stdio: ["inherit", "inherit", "inherit", "ipc"]
  })
}

const start = (fleet: Fleet, number: number): void => {
  const { connections, hub, running } = fleet
  let worker: ChildProcess
  try {
    worker = run(number)
  } catch (error) {
    // The system cannot start another process, for example for lack of memory.
    return ended(fleet, number, `without a start (${String(error)})`)
  }
  const further = hub.handlerOf(number)
  const channel: Channel.Channel = Channel.make(
    (message) => void worker.send(message),
    (subject) => handlerOf(fleet, number, worker, channel, subject) ?? further(subject)
  )
  running.set(number, worker)
  hub.channels.set(number, channel)
  worker.on("message", channel.receive)
  worker.on("message", (message) => connections.receive(number, worker, message))
  let isOver = false
  const over = (how: string): void => {
    if (isOver) return
    isOver = true
    channel.close()
    running.delete(number)
    fleet.serving.delete(number)
    unwatch(fleet, number)
    hub.channels.delete(number)
    connections.leave(number)
    hub.lapsed(number)
    ended(fleet, number, how)
  }
  // A process that did not start emits no `exit`. Other errors are messages to a process that has just ended.
  worker.on("error", (error) => {
    if (worker.pid === undefined) over(`without a start (${error.message})`)
  })
  worker.once("exit", (code, signal) => over(signal === null ? `with code ${code}` : `by ${signal}`))
}

/** Handles a worker's lifecycle messages. */
const handlerOf = (
  fleet: Fleet,
  number: number,
  worker: ChildProcess,
  channel: Channel.Channel,
  subject: string
): Channel.Handler | undefined => {
  const { begun, connections, pauses, ready, serving, watches, workers } = fleet
  switch (subject) {
    case Subjects.begin:
      return begun
    case Subjects.ready:
      return (value) => {
        // The configuration changed while this worker started. The process that replaces it begins with the new text.
        if ((value as Subjects.Reloading).text !== begun().text) return void worker.kill("SIGTERM")
        pauses.delete(number)
        connections.join(number, worker)
        watches.set(
          number,
          watch(channel, (misses) => hangs(fleet, number, worker, misses))
        )
        if (serving.add(number).size === workers) Deferred.unsafeDone(ready, Effect.void)
        return null
      }
    case Subjects.leaving:
      return () => {
        unwatch(fleet, number)
        connections.leave(number)
        // If the process has exited by then, this does nothing.
        setTimeout(() => worker.kill("SIGKILL"), stopLimit).unref()
        return null
      }
    default:
      return undefined
  }
}

const unwatch = ({ watches }: Fleet, number: number): void => {
  watches.get(number)?.end()
  watches.delete(number)
}

/** After this many misses, about two minutes, a worker is killed even if no other worker replies. */
const missesMax = 18

/**
 * Kills a worker that hangs. Its exit triggers a replacement. If no other worker replies either, the cause may be the disk or the machine, so the
 * owner waits longer: a killed worker's open calls are released without a charge.
 */
const hangs = ({ log, watches }: Fleet, number: number, worker: ChildProcess, misses: number): void => {
  const doesAnotherReply = [...watches].some(([other, { answers }]) => other !== number && answers())
  if (!doesAnotherReply && misses < missesMax) return
  log(Effect.logError(`worker ${number} does not respond and is ended`))
  worker.kill("SIGKILL")
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
const stopAll = (fleet: Fleet, server: Server): Effect.Effect<void> =>
  Effect.async((resume) => {
    fleet.closing = true
    server.close()
    for (const timer of fleet.timers) clearTimeout(timer)
    for (const number of fleet.running.keys()) unwatch(fleet, number)
    const workers = [...fleet.running.values()]
    let left = workers.length
    if (left === 0) return resume(Effect.void)
    const limit = setTimeout(() => {
      for (const worker of workers) worker.kill("SIGKILL")
    }, stopLimit)
    for (const worker of workers) {
      worker.once("exit", () => {
        if (--left > 0) return
        clearTimeout(limit)
        resume(Effect.void)
      })
      worker.kill("SIGTERM")
    }
  })
