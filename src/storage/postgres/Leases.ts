/**
 * The runs of nodes on one PostgreSQL database. A run is a row with a lease that its node renews by the database's clock. While the main thread is
 * busy, a separate thread renews the lease (`Renewal`). Once the lease has lapsed, any other node can end the run and release its reservations. The
 * node of an ended run admits no calls until it has a lease again (`books/ledger/write/ConcurrentBatch`). Calls that it settles late are still
 * charged, although their reservation was released (`books/ledger/rows/Released`).
 *
 * When a node with a configured name starts, it ends former runs under this name, so the reservations of a killed process can be released. A former
 * run that is still alive is replaced permanently: it logs this and admits no more calls, and its open calls settle late.
 *
 * One node leads. Its connection here holds an advisory lock. The server closes a connection that is silent for the duration of a lease. A node
 * without a reply for that long no longer considers itself the leader. Two nodes therefore never lead at the same time. An iteration that the former
 * leader began might still be running, but the conditions in its statements make that safe.
 */
import { Effect, Redacted, Runtime, Schedule } from "effect"
import { hostname } from "node:os"
import type { UnknownException } from "effect/Cause"
import type { Client, QueryResult } from "pg"
import * as Ids from "../../kernel/Ids.ts"
import { migrationsTable } from "../database/Unusable.ts"
import { Postgres } from "./Client.ts"
import type { PostgresSettings } from "./Client.ts"
import { now } from "./LeaseTask.ts"
import * as Locks from "./Locks.ts"
import * as Notifications from "./Notifications.ts"
import * as Renewal from "./Renewal.ts"

/** The duration of a lease and the interval between renewals, in seconds. */
const lease = 20
const renewalSeconds = 5
const renewalMillis = renewalSeconds * 1_000

/** The timeout for lease statements, in milliseconds. It is much shorter than a lease. */
const statementTimeout = 5_000

const leaseMillis = lease * 1_000

type RunQuery = (
  text: string,
  ...params: ReadonlyArray<unknown>
) => Effect.Effect<QueryResult["rows"], UnknownException>

interface Parts {
  readonly settings: PostgresSettings
  readonly run: string
  readonly name: string
  readonly knows: number
  readonly ask: RunQuery
  readonly state: State
  readonly listeners: { readonly lead: Set<() => void>; readonly lapse: Set<() => void> }
}

interface State {
  client: Client | undefined
  /** When this thread's last successful renewal began. */
  renewedAt: number
  renewal: Renewal.Renewal | undefined
  /** The connection that holds the leader's lock. */
  leading: Client | undefined
  found: Found
  /** Whether this process must not admit calls or lead, because it is too old or another process has claimed its name. */
  retired: boolean
}

export const make = Effect.gen(function* () {
  const { connect, settings } = yield* Postgres
  const run = yield* Ids.make("run")
  const state: State = {
    client: undefined,
    renewedAt: now(),
    renewal: undefined,
    leading: undefined,
    found: { leader: undefined, nodes: 1, lapsed: 0 },
    retired: false
  }
  /** Allows one statement at a time on the connection. */
  const turn = yield* Effect.makeSemaphore(1)
  const parts: Parts = {
    settings,
    run,
    name: settings.node ?? hostname(),
    knows: settings.knows ?? anyVersion,
    ask: (text, ...params) =>
      turn.withPermits(1)(Effect.tryPromise(() => queryOver(connect, run, state, text, params))),
    state,
    listeners: { lead: new Set(), lapse: new Set() }
  }
  const log = Runtime.runFork(yield* Effect.runtime<never>())
  const begin = Effect.all([enter(parts), replaceFormer(parts), renew(parts)], { discard: true })
  yield* Effect.acquireRelease(Effect.orDie(Effect.zipRight(begin, startRenewal(parts, log))), () => leave(parts))
  yield* pause(renewalMillis).pipe(
    Effect.zipRight(renew(parts)),
    Effect.catchAll((error) =>
      Effect.zipRight(Effect.logWarning("the lease of this node could not be renewed", error.cause), pause(1_000))
    ),
    Effect.forever,
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )
  return { run, hasEnded: hasEnded(parts), node: nodeOf(parts) }
})

const queryOver = async (
  connect: Postgres["Type"]["connect"],
  run: string,
  state: State,
  text: string,
  params: ReadonlyArray<unknown>
) => {
  const client = (state.client ??= await open(connect, run, state))
  try {
    return (await client.query(text, params as Array<unknown>)).rows
  } catch (error) {
    if (state.client === client) state.client = undefined
    client.end().catch(() => {})
    throw error
  }
}

const open = async (connect: Postgres["Type"]["connect"], run: string, state: State): Promise<Client> => {
  const client = connect({
    connectionTimeoutMillis: statementTimeout,
    query_timeout: statementTimeout,
    keepAlive: true,
    application_name: applicationOf(run)
  })
  const lost = () => {
    if (state.client === client) state.client = undefined
  }
  client.on("error", lost)
  client.on("end", lost)
  await client.connect()
  await client.query(`SET idle_session_timeout = '${lease}s'`)
  return client
}

const closeClient = ({ state }: Parts) => Effect.promise(async () => state.client?.end().catch(() => {}))

// Only renewals over this connection count, because it holds the lock.
const leads = ({ state }: Parts): boolean =>
  !state.retired &&
  state.leading !== undefined &&
  state.leading === state.client &&
  state.renewedAt + leaseMillis > now()

const sinceRenewal = ({ state }: Parts): number => now() - Math.max(state.renewedAt, state.renewal?.renewedAt() ?? 0)

const enter = ({ ask, knows, name, run, settings }: Parts) => ask(insertRun, run, name, settings.version ?? "", knows)

// If a batch of the former run hangs, the row stays locked until the batch loses its connection after some seconds. The statement is therefore
// retried.
const replaceFormer = ({ ask, name, run, settings }: Parts) =>
  settings.node === undefined
    ? Effect.void
    : Effect.retry(ask(replaceRuns, name, run), { times: 3, schedule: Schedule.spaced("1 second") })

const renew = Effect.fnUntraced(function* (parts: Parts) {
  const { ask, knows, listeners, name, run, state } = parts
  const [needed] = yield* ask(selectOldestNeeded)
  if (needed!.oldest > knows)
    return yield* retire(
      parts,
      `a newer version has migrated the database (migration ${needed!.id}), and this version can no longer serve it: run the newer version`
    )
  const at = now()
  if ((yield* ask(renewRun, run)).length === 0) {
    const [row] = yield* ask("SELECT replaced FROM tollgate_sql_nodes WHERE run = ?", run)
    if (row?.replaced === 1)
      return yield* retire(
        parts,
        `another process was started as the node ${name}, so this one admits no more calls: stop one, or give each its own NODE_NAME`
      )
    // The row is deleted after a very long silence.
    yield* enter(parts)
  }
  state.retired = false
  state.renewedAt = at
  yield* tryToLead(parts)
  const [row] = yield* ask(lookAround)
  state.found = { leader: row?.leader ?? undefined, nodes: row?.nodes ?? 0, lapsed: row?.lapsed ?? 0 }
  if (leads(parts)) {
    yield* ask(forgetLongEnded)
    yield* ask(Notifications.forgetOld)
  }
  if (state.found.lapsed > 0) listeners.lapse.forEach((listener) => listener())
})

/** Acquires the leader's lock if it is free and this connection does not hold it yet. */
const tryToLead = Effect.fnUntraced(function* ({ ask, listeners, state }: Parts) {
  if (state.leading !== undefined && state.leading === state.client) return
  state.leading = undefined
  const [row] = yield* ask(`SELECT pg_try_advisory_lock(${Locks.leader}) AS locked`)
  if (row?.locked !== 1) return
  state.leading = state.client
  listeners.lead.forEach((listener) => listener())
})

/** Stops admitting calls and lets another node lead. */
const retire = (parts: Parts, why: string) =>
  Effect.suspend(() => {
    const { ask, run, state } = parts
    if (state.retired) return Effect.void
    state.retired = true
    state.leading = undefined
    return Effect.zipRight(
      Effect.logFatal(why),
      ask("UPDATE tollgate_sql_nodes SET until = now(), ended = true WHERE run = ?", run).pipe(
        // This also releases the leader's lock.
        Effect.zipRight(closeClient(parts))
      )
    )
  })

const startRenewal = ({ run, settings, state }: Parts, log: (effect: Effect.Effect<void>) => unknown) =>
  Effect.sync(() => {
    if (settings.hasThread !== true) return
    state.renewal = Renewal.start(
      {
        url: Redacted.value(settings.url),
        run,
        text: keepRun,
        every: renewalMillis,
        patience: statementTimeout,
        stuckAfter: Renewal.stuckAfter
      },
      (error) => log(Effect.logWarning("the thread that renews the lease of this node has failed", error))
    )
  })

const leave = (parts: Parts) =>
  Effect.zipRight(
    Effect.promise(async () => parts.state.renewal?.stop()),
    Effect.ignore(parts.ask("DELETE FROM tollgate_sql_nodes WHERE run = ? AND NOT replaced", parts.run)).pipe(
      Effect.zipRight(closeClient(parts))
    )
  )

const hasEnded =
  ({ ask, run }: Parts) =>
  (name: string) =>
    name === run
      ? Effect.succeed(false)
      : ask(endRun, name).pipe(
          Effect.zipRight(ask("SELECT 1 FROM tollgate_sql_nodes WHERE run = ? AND NOT ended", name)),
          Effect.map((rows) => rows.length === 0),
          // If the run cannot be looked up, assume that it is alive.
          Effect.orElseSucceed(() => false)
        )

const nodeOf = (parts: Parts) => {
  const { listeners, name, state } = parts
  return {
    name,
    lease: {
      left: () => (state.retired ? 0 : leaseMillis - sinceRenewal(parts)),
      sinceRenewal: () => sinceRenewal(parts)
    },
    leads: () => leads(parts),
    leader: () => (leads(parts) ? name : state.found.leader),
    nodes: () => state.found.nodes,
    on: (event: "lead" | "lapse", listener: () => void) => {
      listeners[event].add(listener)
      return () => void listeners[event].delete(listener)
    }
  }
}

interface Found {
  readonly leader: string | undefined
  readonly nodes: number
  readonly lapsed: number
}

/** Waits in real time, independently of the test clock, because the database's clock also runs in real time. */
const pause = (millis: number) =>
  Effect.async<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

/** Returns the application name of a node's connection. On the server, it identifies the holder of the lock. */
const applicationOf = (run: string): string => `tollgate ${run}`

const until = `now() + interval '${lease} seconds'`

const insertRun = `INSERT INTO tollgate_sql_nodes (run, name, version, knows, started_at, until)
  VALUES (?, ?, ?, ?, (extract(epoch FROM now()) * 1000)::bigint, ${until})`

/** The default of `knows`. It means every migration. */
const anyVersion = 2_147_483_647

/**
 * Selects the newest migration, and the oldest migration that a version must know to serve the database. Databases from before rolling upgrades do
 * not store the latter, so a version must know all of their migrations.
 */
export const selectOldestNeeded = `SELECT COALESCE(max(m.migration_id), 0) AS id,
    COALESCE(max(COALESCE((to_jsonb(m) ->> 'oldest')::integer, m.migration_id)), 0) AS oldest
  FROM ${migrationsTable} m`

/** Selects the names of running nodes with a version that does not know this migration. */
export const selectOlder = `SELECT n.name FROM tollgate_sql_nodes n
  WHERE NOT ended AND until > now() AND COALESCE((to_jsonb(n) ->> 'knows')::integer, 1) < ? ORDER BY n.name`

const renewRun = `UPDATE tollgate_sql_nodes SET until = ${until}, ended = false WHERE run = ? AND NOT replaced RETURNING run`

/** The statement that the thread runs, in the driver's parameter syntax. Only the main thread revives a run that was ended. */
const keepRun = `UPDATE tollgate_sql_nodes SET until = ${until} WHERE run = $1 AND NOT ended`

/** Replaces a node's former runs. The row lock waits for batches that admit calls under those runs. */
const replaceRuns = `WITH former AS (
    SELECT run FROM tollgate_sql_nodes WHERE name = ? AND run <> ? AND NOT replaced FOR UPDATE
  )
  UPDATE tollgate_sql_nodes n SET ended = true, replaced = true, until = least(until, now()) FROM former WHERE n.run = former.run`

/** Deletes runs whose lease lapsed long ago. Their reservations have been released. */
const forgetLongEnded = "DELETE FROM tollgate_sql_nodes WHERE until < now() - interval '30 days'"

/** Selects the number of nodes with a lease, the number with a recently lapsed lease, and the leader's name. */
const lookAround = `SELECT
    (SELECT count(*) FROM tollgate_sql_nodes WHERE NOT ended AND until > now()) AS nodes,
    (SELECT count(*) FROM tollgate_sql_nodes
      WHERE NOT ended AND until <= now() AND until > now() - interval '${3 * renewalSeconds} seconds') AS lapsed,
    (SELECT n.name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      JOIN tollgate_sql_nodes n ON a.application_name = '${applicationOf("")}' || n.run
      WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (l.classid::bigint << 32) | l.objid::bigint = ${Locks.leader} LIMIT 1) AS leader`

/**
 * Ends a run if its lease has lapsed. After the server starts, every node has the duration of a lease to return. The row lock waits for the run's
 * batches.
 */
const endRun = `WITH lapsed AS (
    SELECT run FROM tollgate_sql_nodes
    WHERE run = ? AND NOT ended AND greatest(until, pg_postmaster_start_time() + interval '${lease} seconds') < now() FOR UPDATE
  )
  UPDATE tollgate_sql_nodes n SET ended = true FROM lapsed WHERE n.run = lapsed.run`

export const selectAtWork = "SELECT name FROM tollgate_sql_nodes WHERE NOT ended AND until > now() ORDER BY name"
