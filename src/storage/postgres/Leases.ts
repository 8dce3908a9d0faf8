/**
 * Runs of nodes over one PostgreSQL database. A run is a row with a lease that its node renews, by the database's clock. A thread renews it
 * too (`Renewal`), for the time in which the main thread is busy. A run whose lease has lapsed may be ended by any other node, which then
 * gives back what it had set aside. A node whose run was ended admits no more calls until it has a lease again (`books/ledger/write/ConcurrentBatch`). What it
 * settles late finds its reservation released, and is charged all the same (`books/ledger/rows/Released`).
 *
 * A node that starts ends the former run of its name at once, so what a killed node had set aside is free when it is back. A former run that
 * is still alive is replaced for good: it admits no calls any more, and says so. Its open calls settle late.
 *
 * One node leads: the one whose connection here holds an advisory lock. The server ends a connection that says nothing for as long as
 * a lease lasts, and a node that was not answered for so long does not take itself for the leader; so there are never two at once by their
 * own account. A turn that the former leader has begun may still run then: its statements have conditions of their own.
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

/** How long a lease is good for, and how often it is renewed, in seconds. */
const lease = 20
const renewalSeconds = 5
const renewalMillis = renewalSeconds * 1_000

/** How long a statement about leases may take, in milliseconds: far less than a lease. */
const patience = 5_000

const leaseMillis = lease * 1_000

type Ask = (text: string, ...params: ReadonlyArray<unknown>) => Effect.Effect<QueryResult["rows"], UnknownException>

interface Parts {
  readonly settings: PostgresSettings
  readonly run: string
  readonly name: string
  /** The newest migration that this version knows. */
  readonly knows: number
  readonly ask: Ask
  readonly state: State
  readonly listeners: { readonly lead: Set<() => void>; readonly lapse: Set<() => void> }
}

interface State {
  client: Client | undefined
  /** When the last renewal of this thread that was answered was asked for. */
  renewedAt: number
  renewal: Renewal.Renewal | undefined
  /** The connection that holds the lock of the leader. */
  leading: Client | undefined
  found: Found
  /** Whether this process may not serve the database any more: it is too old, or another one has its name. */
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
  /** One statement at a time over the one connection. */
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
    connectionTimeoutMillis: patience,
    query_timeout: patience,
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

// By the renewals of this connection, which holds the lock.
const leads = ({ state }: Parts): boolean =>
  !state.retired &&
  state.leading !== undefined &&
  state.leading === state.client &&
  state.renewedAt + leaseMillis > now()

const sinceRenewal = ({ state }: Parts): number => now() - Math.max(state.renewedAt, state.renewal?.renewedAt() ?? 0)

const enter = ({ ask, knows, name, run, settings }: Parts) => ask(insertRun, run, name, settings.version ?? "", knows)

// A batch of the former run that hangs holds its row, and loses its connection after some seconds.
const replaceFormer = ({ ask, name, run, settings }: Parts) =>
  settings.node === undefined
    ? Effect.void
    : Effect.retry(ask(replaceRuns, name, run), { times: 3, schedule: Schedule.spaced("1 second") })

const renew = Effect.fnUntraced(function* (parts: Parts) {
  const { ask, knows, listeners, name, run, state } = parts
  const [needed] = yield* ask(selectOldestNeeded)
  if (needed!.oldest > knows)
    return yield* giveUp(
      parts,
      `a newer version brought the database up to date (migration ${needed!.id}), and this one cannot serve it any more: run that`
    )
  const at = now()
  if ((yield* ask(renewRun, run)).length === 0) {
    const [row] = yield* ask("SELECT replaced FROM tollgate_sql_nodes WHERE run = ?", run)
    if (row?.replaced === 1)
      return yield* giveUp(
        parts,
        `another process was started as the node ${name}, so this one admits no calls any more: stop it, or give each its own NODE_NAME`
      )
    // Its row is gone where it said nothing for very long.
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

/** Takes the lock of the leader if it is free and this connection does not hold it. */
const tryToLead = Effect.fnUntraced(function* ({ ask, listeners, state }: Parts) {
  if (state.leading !== undefined && state.leading === state.client) return
  state.leading = undefined
  const [row] = yield* ask(`SELECT pg_try_advisory_lock(${Locks.leader}) AS locked`)
  if (row?.locked !== 1) return
  state.leading = state.client
  listeners.lead.forEach((listener) => listener())
})

/** The node admits no calls from now on, and another one leads. */
const giveUp = (parts: Parts, why: string) =>
  Effect.suspend(() => {
    const { ask, run, state } = parts
    if (state.retired) return Effect.void
    state.retired = true
    state.leading = undefined
    return Effect.zipRight(
      Effect.logFatal(why),
      ask("UPDATE tollgate_sql_nodes SET until = now(), ended = true WHERE run = ?", run).pipe(
        // With it goes the lock of the leader.
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
        patience,
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
          // A run that cannot be looked up is taken to be alive.
          Effect.orElseSucceed(() => false)
        )

const nodeOf = (parts: Parts) => {
  const { listeners, name, state } = parts
  return {
    name,
    leaseLeft: () => (state.retired ? 0 : leaseMillis - sinceRenewal(parts)),
    sinceRenewal: () => sinceRenewal(parts),
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

/** Time of this process, however its clock may be steered: the database's runs beside it. */
const pause = (millis: number) =>
  Effect.async<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

/** The name of a node's connection at the server, which reports it as the holder of the lock. */
const applicationOf = (run: string): string => `tollgate ${run}`

const until = `now() + interval '${lease} seconds'`

const insertRun = `INSERT INTO tollgate_sql_nodes (run, name, version, knows, started_at, until)
  VALUES (?, ?, ?, ?, (extract(epoch FROM now()) * 1000)::bigint, ${until})`

/** The version of a node that is taken to know every migration. */
const anyVersion = 2_147_483_647

/**
 * The newest migration, and which migration a version must have at least to serve the database. (A database that was made before versions
 * could serve beside each other does not say: then only the version that made it.)
 */
export const selectOldestNeeded = `SELECT COALESCE(max(m.migration_id), 0) AS id,
    COALESCE(max(COALESCE((to_jsonb(m) ->> 'oldest')::integer, m.migration_id)), 0) AS oldest
  FROM ${migrationsTable} m`

/** The names of the nodes at work whose version does not have this migration. */
export const selectOlder = `SELECT n.name FROM tollgate_sql_nodes n
  WHERE NOT ended AND until > now() AND COALESCE((to_jsonb(n) ->> 'knows')::integer, 1) < ? ORDER BY n.name`

const renewRun = `UPDATE tollgate_sql_nodes SET until = ${until}, ended = false WHERE run = ? AND NOT replaced RETURNING run`

/** For the thread, whose driver takes it unchanged. A run that was ended is for the main thread to begin again. */
const keepRun = `UPDATE tollgate_sql_nodes SET until = ${until} WHERE run = $1 AND NOT ended`

/** The former runs of a node. The lock waits for batches that admit calls under them. */
const replaceRuns = `WITH former AS (
    SELECT run FROM tollgate_sql_nodes WHERE name = ? AND run <> ? AND NOT replaced FOR UPDATE
  )
  UPDATE tollgate_sql_nodes n SET ended = true, replaced = true, until = least(until, now()) FROM former WHERE n.run = former.run`

/** Of nodes that ended without a word: those that gave back what they had set aside have done so long since. */
const forgetLongEnded = "DELETE FROM tollgate_sql_nodes WHERE until < now() - interval '30 days'"

/** The others, by their leases; those that lapsed since the last look or the one before. */
const lookAround = `SELECT
    (SELECT count(*) FROM tollgate_sql_nodes WHERE NOT ended AND until > now()) AS nodes,
    (SELECT count(*) FROM tollgate_sql_nodes
      WHERE NOT ended AND until <= now() AND until > now() - interval '${3 * renewalSeconds} seconds') AS lapsed,
    (SELECT n.name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      JOIN tollgate_sql_nodes n ON a.application_name = '${applicationOf("")}' || n.run
      WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (l.classid::bigint << 32) | l.objid::bigint = ${Locks.leader} LIMIT 1) AS leader`

/** After a start of the server every node has a lease's time to come back. The lock waits for batches that admit calls under this run. */
const endRun = `WITH lapsed AS (
    SELECT run FROM tollgate_sql_nodes
    WHERE run = ? AND NOT ended AND greatest(until, pg_postmaster_start_time() + interval '${lease} seconds') < now() FOR UPDATE
  )
  UPDATE tollgate_sql_nodes n SET ended = true FROM lapsed WHERE n.run = lapsed.run`

/** The names of the nodes that are at work. */
export const selectAtWork = "SELECT name FROM tollgate_sql_nodes WHERE NOT ended AND until > now() ORDER BY name"
