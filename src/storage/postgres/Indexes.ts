/**
 * Builds the indexes that were added to existing tables (`Schema.indexes`), concurrently and outside any transaction. Writers do not wait, but
 * queries that need an index are slower until it is built. The catalog shows the remaining work, so a killed process leaves no wrong state behind:
 * - A missing index is built.
 * - An invalid index is left over from an unfinished build. It is dropped and built again.
 * - Only one process builds at a time, because its connection holds an advisory lock. If the process dies, the server still finishes the build and
 *   holds the lock until then. The other processes check again periodically.
 *
 * `CREATE INDEX CONCURRENTLY` waits for every open transaction in the database, so no transaction may wait for the lock.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Data, Duration, Effect } from "effect"
import type { Client } from "pg"
import { waker as makeWaker } from "../../kernel/Loop.ts"
import type { Job } from "../../kernel/Loop.ts"
import { Postgres } from "./Client.ts"
import * as Locks from "./Locks.ts"
import { indexes } from "./Schema.ts"
import type { Index } from "./Schema.ts"

/** The connection failed, or the server rejected a statement. */
export class BuildFailed extends Data.TaggedError("BuildFailed")<{
  /** The index that was being built; `undefined` if none was. */
  readonly index: string | undefined
  readonly cause: unknown
}> {}

/** Called for each index that this process builds. */
export interface Listener {
  readonly begin: (index: Index) => Effect.Effect<void>
  readonly end: (index: Index, millis: number) => Effect.Effect<void>
}

/** The server's progress report on a build: the step of `CREATE INDEX`, and a percentage if the server provides one. */
export interface Progress {
  readonly index: string
  readonly phase: string
  readonly percent: number | null
}

export const textOf = ({ definition, name, table }: Index, how: "" | "CONCURRENTLY" = ""): string =>
  `CREATE INDEX ${how} ${name} ON ${table} ${definition}`

const names = indexes.map(({ name }) => `'${name}'`).join(", ")

/**
 * Selects the indexes that are missing or invalid. `there` means that the index is in the catalog, and `building` that a connection is building it.
 */
const selectMissing = `SELECT w.name, i.indexrelid IS NOT NULL AS there,
    EXISTS (SELECT 1 FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid) AS building
  FROM unnest(ARRAY[${names}]) w (name) LEFT JOIN pg_index i ON i.indexrelid = to_regclass(w.name)
  WHERE i.indisvalid IS NOT TRUE`

const selectProgress = `SELECT c.relname AS index, p.phase,
    CASE WHEN p.tuples_total > 0 THEN 100 * p.tuples_done / p.tuples_total
      WHEN p.blocks_total > 0 THEN 100 * p.blocks_done / p.blocks_total END AS percent
  FROM pg_stat_progress_create_index p JOIN pg_class c ON c.oid = p.index_relid
  WHERE p.datname = current_database() AND c.relname IN (${names})`

interface Missing {
  readonly name: string
  readonly there: 0 | 1
  readonly building: 0 | 1
}

/** Removes the time limits that the server, the database or the URL can set. The available limits depend on the server's version. */
const unlimited = `SELECT set_config(name, '0', false) FROM pg_settings
  WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout')`

type Ask = <Row>(text: string) => Effect.Effect<ReadonlyArray<Row>, BuildFailed>

/** Opens a separate connection that closes with the scope. */
const session = Effect.gen(function* () {
  const { connect, settings } = yield* Postgres
  const client: Client = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const fresh = connect({
        connectionTimeoutMillis: settings.connectMillis,
        keepAlive: true,
        application_name: "tollgate indexes"
      })
      // Pending queries receive the error directly.
      fresh.on("error", () => {})
      return fresh
    }),
    // Do not wait for a running statement. The server finishes it anyway.
    (client) => Effect.promise(() => client.end().catch(() => {}))
  )
  const ask =
    (index?: string): Ask =>
    (text) =>
      Effect.tryPromise({
        try: async () => (await client.query(text)).rows,
        catch: (cause) => new BuildFailed({ index, cause })
      })
  yield* Effect.tryPromise({
    try: () => client.connect(),
    catch: (cause) => new BuildFailed({ index: undefined, cause })
  })
  yield* ask()(unlimited)
  return ask
})

const buildOne = Effect.fnUntraced(function* (ask: Ask, index: Index, isThere: boolean, { begin, end }: Listener) {
  const drop = ask(`DROP INDEX CONCURRENTLY IF EXISTS ${index.name}`)
  yield* begin(index)
  const began = yield* Clock.currentTimeMillis
  if (isThere) yield* drop
  yield* Effect.tapError(ask(textOf(index, "CONCURRENTLY")), () =>
    // An unfinished index takes up space and slows down writers.
    Effect.ignore(drop)
  )
  yield* end(index, (yield* Clock.currentTimeMillis) - began)
})

/** Builds the missing indexes. Returns `busy` if another process or an operator is building one of them. */
export const build = (listener: Listener): Effect.Effect<"complete" | "busy", BuildFailed, Postgres> =>
  Effect.scoped(
    Effect.gen(function* () {
      const ask = yield* session
      const [lock] = yield* ask()<{ readonly free: 0 | 1 }>(`SELECT pg_try_advisory_lock(${Locks.indexes}) AS free`)
      if (lock?.free !== 1) return "busy"
      const missing = new Map((yield* ask()<Missing>(selectMissing)).map((one) => [one.name, one]))
      for (const index of indexes) {
        const found = missing.get(index.name)
        if (found === undefined) continue
        // An operator is building the index.
        if (found.building === 1) return "busy"
        yield* buildOne(ask(index.name), index, found.there === 1, listener)
      }
      return "complete"
    })
  )

/** The pause before the next check of the catalog, after a build here or while another process builds. */
const lookPause = Duration.seconds(5)

/** Waits until all indexes are built, by this node or another. `report` receives the progress of each running build once a second. */
export const complete = Effect.fnUntraced(function* (
  listener: Listener,
  report: (progress: Progress) => Effect.Effect<void>
) {
  const sql = yield* SqlClient
  const built = build(listener).pipe(
    Effect.tap((outcome) => (outcome === "busy" ? Effect.sleep("1 second") : Effect.void)),
    Effect.repeat({ until: (outcome) => outcome === "complete" })
  )
  const watched = Effect.sleep("1 second").pipe(
    Effect.zipRight(Effect.ignore(Effect.flatMap(sql.unsafe<Progress>(selectProgress), Effect.forEach(report)))),
    Effect.forever
  )
  yield* Effect.raceFirst(built, watched)
})

/** The pause after a failed build, in seconds. It doubles with each failure, from the first value up to the last. */
const pauseFirst = 60
const pauseLast = 3_600

/** Builds missing indexes in the background. A failure is logged. It neither stops the node nor affects its readiness. */
export const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const postgres = yield* Postgres
  const waker = yield* makeWaker
  let missing: number | undefined
  let pause = pauseFirst

  const listener: Listener = {
    begin: ({ name, table }) =>
      Effect.logInfo(`building the index ${name} of ${table}; writes continue in the meantime`),
    end: ({ name }, millis) =>
      Effect.suspend(() => {
        missing = (missing ?? 1) - 1
        return Effect.logInfo(`built the index ${name} in ${(millis / 1_000).toFixed(1)} s`)
      })
  }

  /** Builds once, then waits until the next check is due. */
  const attempt = Effect.provideService(build(listener), Postgres, postgres).pipe(
    Effect.matchEffect({
      onSuccess: () => Effect.sleep(lookPause),
      onFailure: ({ cause, index }) => {
        const seconds = pause
        pause = Math.min(pauseLast, pause * 2)
        return Effect.zipRight(
          Effect.logWarning(
            `${index ?? "an index"} could not be built; some pages are slow without it. Next attempt in ${seconds} s`,
            cause
          ),
          Effect.sleep(Duration.seconds(seconds))
        )
      }
    }),
    Effect.zipRight(waker.wake)
  )

  const scope = yield* Effect.scope
  const job: Job = {
    name: "indexes",
    everywhere: true,
    waker,
    turn: Effect.gen(function* () {
      missing = (yield* sql.unsafe(selectMissing)).length
      // Iterations must be short, and a build takes a long time.
      if (missing > 0) yield* Effect.forkIn(attempt, scope)
      return undefined
    })
  }
  return { missing: () => missing, jobs: [job] }
})
