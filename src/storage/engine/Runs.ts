/**
 * The runs of programs on a database. Work in progress (a reservation, a job that is being submitted, an Idempotency-Key) records the name of its
 * run, so that other runs can recognize abandoned work. On SQLite, locks show which runs have ended. Each run holds a lock on a file next to the
 * database, which the operating system releases when the process ends. A database in memory has only the runs of this process. On PostgreSQL, runs
 * have leases (`postgres/Leases`).
 *
 * Where the specification is silent:
 * - A reservation records the run that created it. The gate releases the reservations of ended runs when it opens and once a minute after that
 *   (`Gate.layerJobs`). Their records have the `error_type` `interrupted`. Hosts that share a database do not release each other's open calls.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Option } from "effect"
import { readdirSync } from "node:fs"
import { basename, dirname } from "node:path"
import * as Ids from "../../kernel/Ids.ts"
import * as Lock from "../sqlite/Lock.ts"
import { Postgres } from "../postgres/Client.ts"
import * as Leases from "../postgres/Leases.ts"
import { Peers } from "./Peers.ts"

export interface RunsContract {
  readonly run: string
  /** Returns whether the run has ended. A name in another format counts as ended, because earlier versions used other names. */
  readonly hasEnded: (run: string) => Effect.Effect<boolean>
  /** This process as a node; `undefined` if it alone serves a SQLite file. */
  readonly node?: NodeContract
}

/**
 * One of several nodes on a database: a process on PostgreSQL, or one of the processes that serve a SQLite file together (`storage/engine/Peers`).
 * On PostgreSQL, the information about other nodes dates from the last renewal of the lease.
 */
export interface NodeContract {
  readonly name: string
  /** The node's lease; `undefined` on SQLite, where the operating system shows that a process has ended. */
  readonly lease: LeaseContract | undefined
  /** Returns whether this node is the leader, the node that runs the loops. */
  readonly leads: () => boolean
  readonly leader: () => string | undefined
  readonly nodes: () => number
  /**
   * Listens for an event and returns a function that removes the listener. `lead` means that this node begins to lead, and `lapse` that another
   * node's lease has lapsed or that its process has ended.
   */
  readonly on: (event: "lead" | "lapse", listener: () => void) => () => void
}

/** Times are in milliseconds. */
export interface LeaseContract {
  /** The remaining time; 0 or negative if the lease has lapsed. */
  readonly left: () => number
  readonly sinceRenewal: () => number
}

export class Runs extends Context.Tag("tollgate/sql/Runs")<Runs, RunsContract>() {
  /** Provides the run of the layers below, if there is one. Otherwise, provides a run that lasts until the layer's scope closes. */
  static readonly layer = Layer.suspend(() =>
    Layer.scoped(
      Runs,
      Effect.flatMap(Effect.serviceOption(Runs), (shared) => (Option.isSome(shared) ? shared : Effect.suspend(begin)))
    )
  )
}

const begin = () =>
  Effect.flatMap(Effect.serviceOption(Postgres), (postgres) =>
    Option.isNone(postgres) ? onFile : Effect.provideService(Leases.make, Postgres, postgres.value)
  )

/** A run of a process that serves a file, alone or with its peers. */
const onFile = Effect.suspend(() =>
  Effect.zipWith(make, Effect.serviceOption(Peers), (runs, peers): RunsContract =>
    Option.isNone(peers) ? runs : { ...runs, node: peers.value.node }
  )
)

/** This process's runs on SQLite. */
const here = new Set<string>()

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const run = yield* Ids.make("run")
  const [main] = yield* Effect.orDie(sql<{ file: string }>`SELECT file FROM pragma_database_list WHERE name = 'main'`)
  /** The database file; empty if the database is in memory. */
  const file = main?.file ?? ""
  const lockOf = (name: string) => `${file}.${name}`
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      if (file !== "") removeEnded(file)
      const lock = file === "" ? undefined : Lock.acquireNew(lockOf(run))
      here.add(run)
      return lock
    }),
    (lock) =>
      Effect.sync(() => {
        here.delete(run)
        lock?.release()
      })
  )
  return {
    run,
    hasEnded: (name) =>
      Effect.sync(() => !here.has(name) && (file === "" || !isRun(name) || !Lock.isLocked(lockOf(name))))
  } satisfies RunsContract
})

const isRun = (name: string): boolean => /^run_[0-9a-z]+$/.test(name)

/** Removes the lock files that ended runs have left behind. */
const removeEnded = (file: string): void => {
  const prefix = `${basename(file)}.`
  for (const name of readdirSync(dirname(file))) {
    const run = name.slice(prefix.length)
    if (name.startsWith(prefix) && isRun(run) && !here.has(run)) Lock.isLocked(`${file}.${run}`)
  }
}
