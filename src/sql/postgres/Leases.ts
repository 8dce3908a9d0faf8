/**
 * Runs of nodes over one PostgreSQL database. A run is a row with a lease that its node renews, by the database's clock. A run whose lease
 * has lapsed may be ended by any other node, which then gives back what it had set aside. A node whose run was ended admits no more calls
 * until it has a lease again (`ledger/Several`); what it settles late finds its reservation gone, and charges nothing.
 */
import { Effect } from "effect"
import { hostname } from "node:os"
import type { Client } from "pg"
import * as Ids from "../../kernel/Ids.ts"
import type { RunsContract } from "../Runs.ts"
import { Postgres } from "./Client.ts"

/** How long a lease is good for, and how often it is renewed, in seconds. */
const lease = 20
const renewal = 5

/** How long a statement about leases may take, in milliseconds: far less than a lease. */
const patience = 5_000

export const make = Effect.gen(function* () {
  const { connect, settings } = yield* Postgres
  const run = yield* Ids.make("run")
  let client: Client | undefined
  const ask = async (text: string, params: ReadonlyArray<unknown>) => {
    if (client === undefined) {
      const fresh = connect({ connectionTimeoutMillis: patience, query_timeout: patience })
      fresh.on("error", () => {
        if (client === fresh) client = undefined
      })
      await fresh.connect()
      client = fresh
    }
    try {
      return (await client.query(text, params as Array<unknown>)).rows
    } catch (error) {
      const lost = client
      client = undefined
      lost.end().catch(() => {})
      throw error
    }
  }
  /** One statement at a time over the one connection. */
  const turn = yield* Effect.makeSemaphore(1)
  const asked = (text: string, ...params: ReadonlyArray<unknown>) =>
    turn.withPermits(1)(Effect.tryPromise(() => ask(text, params)))

  yield* Effect.acquireRelease(
    Effect.orDie(asked(insertRun, run, settings.node ?? hostname(), settings.version ?? "")),
    () =>
      Effect.ignore(asked("DELETE FROM tollgate_sql_nodes WHERE run = ?", run)).pipe(
        Effect.zipRight(Effect.promise(async () => client?.end().catch(() => {})))
      )
  )
  yield* asked(renewRun, run).pipe(
    Effect.matchEffect({
      onFailure: (error) => Effect.as(Effect.logWarning("the lease of this node could not be renewed", error.cause), 1),
      onSuccess: () => Effect.succeed(renewal)
    }),
    Effect.flatMap((seconds) =>
      Effect.async<void>((resume) => {
        // Time of this process, however its clock may be steered: the database's runs beside it.
        const timer = setTimeout(() => resume(Effect.void), seconds * 1_000)
        return Effect.sync(() => clearTimeout(timer))
      })
    ),
    Effect.forever,
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )
  return {
    run,
    hasEnded: (name) =>
      name === run
        ? Effect.succeed(false)
        : asked(endRun, name).pipe(
            Effect.zipRight(asked("SELECT 1 FROM tollgate_sql_nodes WHERE run = ? AND NOT ended", name)),
            Effect.map((rows) => rows.length === 0),
            // Whoever cannot be asked after is taken to be at work.
            Effect.orElseSucceed(() => false)
          )
  } satisfies RunsContract
})

const until = `now() + interval '${lease} seconds'`

const insertRun = `INSERT INTO tollgate_sql_nodes (run, name, version, started_at, until)
  VALUES (?, ?, ?, (extract(epoch FROM now()) * 1000)::bigint, ${until})`

const renewRun = `UPDATE tollgate_sql_nodes SET until = ${until}, ended = false WHERE run = ?`

/** After a start of the server every node has a lease's time to come back. The lock waits for batches that admit calls under this run. */
const endRun = `WITH lapsed AS (
    SELECT run FROM tollgate_sql_nodes
    WHERE run = ? AND NOT ended AND greatest(until, pg_postmaster_start_time() + interval '${lease} seconds') < now() FOR UPDATE
  )
  UPDATE tollgate_sql_nodes n SET ended = true FROM lapsed WHERE n.run = lapsed.run`

/** Of runs, a JSON list, whether each was ended. While the transaction lasts nobody ends one. */
export const selectEnded =
  "SELECT ended FROM tollgate_sql_nodes WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run FOR KEY SHARE"

/** The names of the nodes that are at work. */
export const selectAtWork = "SELECT name FROM tollgate_sql_nodes WHERE NOT ended AND until > now() ORDER BY name"
