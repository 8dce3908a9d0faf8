/**
 * Runs of programs on a database. Work that a run has begun (a reservation, a job that is being submitted, an Idempotency-Key) has its
 * name, so that other runs can tell work in progress from abandoned work. Time does not decide that: each run holds a lock on a file beside
 * the database, which ends with its process. Of a database in memory there are only the runs of this process.
 *
 * Where the specification is silent:
 * - A reservation has the name of the run that made it. A run holds a lock on a file beside the database (`storage/engine/Runs`); the
 *   operating system releases it when the process ends. The gate releases the reservations of ended runs when it opens and once a minute
 *   (`Gate.layerJobs`); their records say `interrupted`. Hosts that share a database do not release each other's calls.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Option } from "effect"
import { readdirSync } from "node:fs"
import { basename, dirname } from "node:path"
import * as Ids from "../../kernel/Ids.ts"
import * as Lock from "../sqlite/Lock.ts"
import { Postgres } from "../postgres/Client.ts"
import * as Leases from "../postgres/Leases.ts"

export interface RunsContract {
  /** The name of this run. */
  readonly run: string
  /** Whether the run has ended. So has whatever is no name of a run: earlier versions had other names. */
  readonly hasEnded: (run: string) => Effect.Effect<boolean>
  /** This process as a node; `undefined` if one process serves the database. */
  readonly node?: NodeContract
}

/** A node among those over one database. Times are milliseconds of this process; what is said of others is as old as the last renewal. */
export interface NodeContract {
  readonly name: string
  /** How long its lease is good for still: negative once it has lapsed. */
  readonly leaseLeft: () => number
  readonly sinceRenewal: () => number
  /** Whether it does the work that is done once for all nodes. */
  readonly leads: () => boolean
  /** The name of the node that leads, where one does. */
  readonly leader: () => string | undefined
  /** How many nodes have a lease. */
  readonly nodes: () => number
  /** `lead`: this node begins to lead. `lapse`: the lease of another has lapsed. Called at once; answers what ends the calls. */
  readonly on: (event: "lead" | "lapse", listener: () => void) => () => void
}

export class Runs extends Context.Tag("tollgate/sql/Runs")<Runs, RunsContract>() {
  /** The run of the layers below, if there is one; otherwise a run that lasts as long as the layer's scope. */
  static readonly layer = Layer.suspend(() =>
    Layer.scoped(
      Runs,
      Effect.flatMap(Effect.serviceOption(Runs), (shared) => (Option.isSome(shared) ? shared : Effect.suspend(begin)))
    )
  )
}

const begin = () =>
  Effect.flatMap(Effect.serviceOption(Postgres), (postgres) =>
    Option.isNone(postgres) ? make : Effect.provideService(Leases.make, Postgres, postgres.value)
  )

/** The runs of this process. */
const here = new Set<string>()

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const run = yield* Ids.make("run")
  const [main] = yield* Effect.orDie(sql<{ file: string }>`SELECT file FROM pragma_database_list WHERE name = 'main'`)
  /** The database, or nothing where it is in memory. */
  const file = main?.file ?? ""
  const lockOf = (name: string) => `${file}.${name}`
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      if (file !== "") removeEnded(file)
      const lock = file === "" ? undefined : Lock.takeNew(lockOf(run))
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
      Effect.sync(() => !here.has(name) && (file === "" || !isRun(name) || !Lock.isTaken(lockOf(name))))
  } satisfies RunsContract
})

const isRun = (name: string): boolean => /^run_[0-9a-z]+$/.test(name)

/** Removes the files of runs that ended without doing so. */
const removeEnded = (file: string): void => {
  const prefix = `${basename(file)}.`
  for (const name of readdirSync(dirname(file))) {
    const run = name.slice(prefix.length)
    if (name.startsWith(prefix) && isRun(run) && !here.has(run)) Lock.isTaken(`${file}.${run}`)
  }
}
