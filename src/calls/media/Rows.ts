/** Queries and updates the table of generation jobs. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { holderOf, signedIn } from "../../kernel/Caller.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import * as Ids from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { PageOf } from "../../kernel/Page.ts"
import type { Nano } from "../../kernel/Money.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { Taken } from "../../upstream/generation/GenerationQueue.ts"
import type { FailureType, Job, JobCaller, JobRoute, JobStatus, Order } from "./Job.ts"

export interface Row {
  readonly id: string
  readonly call: string
  readonly account_id: AccountId
  readonly type: Order["type"]
  readonly model: string
  readonly provider: string
  readonly upstream: string
  readonly endpoint: string
  /** The vendor's job id, or `null` until the vendor has accepted the job. */
  readonly vendor_id: string | null
  readonly status: JobStatus | "SUBMITTING"
  readonly queue_position: number | null
  readonly units: number
  readonly unit: string
  readonly quote: string
  readonly settled: number
  readonly cost: string
  readonly inference_time: number | null
  readonly output: string | null
  readonly error: string | null
  readonly error_type: FailureType | null
  readonly cancel_requested: number
  readonly created_at: number
}

export interface End {
  readonly status: "COMPLETED" | "CANCELLED"
  readonly cost: Nano
  readonly error_type?: FailureType
  readonly error?: string
  readonly output?: Record<string, unknown>
  readonly inference_time?: number | null
}

/** The maximum length of a saved vendor error message, in characters. */
const errorMax = 2_000

export type Rows = ReturnType<typeof make>

export const make = (sql: SqlClient) => ({ ...readerOf(sql), ...statementsOf(sql) })

/** Selects a route's jobs that the caller may access. Jobs of earlier versions have neither a tenant nor a holder. */
const accessibleJobs = (sql: SqlClient, caller: JobCaller, route: JobRoute) => {
  const holder = holderOf(caller)
  const held = holder === signedIn ? sql`true` : sql`holder = ${holder}`
  return sql`account_id = ${caller.account_id} AND route = ${route} AND status <> 'SUBMITTING'
    AND (tenant_id IS NULL OR (tenant_id = ${caller.tenant_id} AND ${held}))`
}

const readerOf = (sql: SqlClient) => {
  const columnsWith = (output: string) =>
    sql.literal(`id, call, account_id, type, model, provider, upstream, endpoint, vendor_id, status,
      queue_position, units, unit, CAST(quote AS TEXT) AS quote, settled, CAST(cost AS TEXT) AS cost, inference_time,
      ${output}, error, error_type, cancel_requested, created_at`)
  const columns = columnsWith("output")

  return {
    byId: (id: string): Effect.Effect<Row | undefined> =>
      Effect.map(Effect.orDie(sql<Row>`SELECT ${columns} FROM tollgate_media_jobs WHERE id = ${id}`), ([row]) => row),

    /** Returns a caller's job, unless it is still being submitted. */
    ofCaller: (
      caller: JobCaller,
      route: JobRoute,
      column: "id" | "call",
      value: string
    ): Effect.Effect<Row | undefined> =>
      Effect.map(
        Effect.orDie(
          sql<Row>`SELECT ${columns} FROM tollgate_media_jobs WHERE ${sql(column)} = ${value} AND ${accessibleJobs(sql, caller, route)}`
        ),
        ([row]) => row
      ),

    /**
     * Returns a page of the caller's jobs, newest first, and the total number of jobs. Jobs that are still being submitted are omitted. Outputs are
     * not read, because one page's outputs can take gigabytes.
     */
    page: Effect.fnUntraced(function* (caller: JobCaller, route: JobRoute, { page, per_page }: PageOf) {
      const mine = accessibleJobs(sql, caller, route)
      const [all] = yield* sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_media_jobs WHERE ${mine}`
      const rows = yield* sql<Row>`SELECT ${columnsWith("NULL AS output")} FROM tollgate_media_jobs WHERE ${mine}
        ORDER BY id DESC LIMIT ${per_page} OFFSET ${(page - 1) * per_page}`
      return { total: all?.n ?? 0, rows }
    }, Effect.orDie),

    /** Returns the ids of open jobs that a vendor has accepted. */
    running: Effect.orDie(
      sql<{ id: string }>`SELECT id FROM tollgate_media_jobs WHERE settled = 0 AND vendor_id IS NOT NULL`
    ),

    /** Returns the open jobs that no vendor has accepted: their submission is in progress or was interrupted. */
    submitting: Effect.orDie(
      sql<Row>`SELECT ${columns} FROM tollgate_media_jobs WHERE settled = 0 AND vendor_id IS NULL`
    )
  }
}

const statementsOf = (sql: SqlClient) => ({
  insert: (id: string, call: string, caller: JobCaller, order: Order, quote: Nano, now: number): Statement =>
    statement(
      sql`INSERT INTO tollgate_media_jobs ${sql.insert({
        id,
        call,
        account_id: caller.account_id,
        tenant_id: caller.tenant_id,
        holder: holderOf(caller),
        route: order.route,
        type: order.type,
        model: order.model,
        provider: order.provider,
        upstream: order.upstream,
        endpoint: order.endpoint,
        status: "SUBMITTING",
        units: order.units,
        unit: order.unit,
        quote,
        settled: 0,
        cost: 0n,
        cancel_requested: 0,
        created_at: now,
        updated_at: now
      })}`
    ),

  remove: (id: string): Statement => statement(sql`DELETE FROM tollgate_media_jobs WHERE id = ${id}`),

  /** Records that the vendor has accepted the job. If another node has already ended the job, the job remains ended. */
  take: (id: string, { queue_position, vendor_id }: Taken, now: number): Statement =>
    statement(sql`UPDATE tollgate_media_jobs SET vendor_id = ${vendor_id}, status = 'IN_QUEUE',
      queue_position = ${queue_position}, updated_at = ${now} WHERE id = ${id} AND settled = 0`),

  progress: (id: string, status: JobStatus, queue_position: number | null, now: number): Statement =>
    statement(sql`UPDATE tollgate_media_jobs SET status = ${status}, queue_position = ${queue_position}, updated_at = ${now}
      WHERE id = ${id} AND settled = 0`),

  requestCancel: (id: string, now: number): Statement =>
    statement(sql`UPDATE tollgate_media_jobs SET cancel_requested = 1, status = 'CANCELLED', updated_at = ${now}
      WHERE id = ${id} AND settled = 0`),

  /** Ends the job. The transaction fails if the job has already ended. */
  end: (id: string, { cost, error, error_type, inference_time, output, status }: End, now: number): Statement =>
    statement(
      sql`UPDATE tollgate_media_jobs SET status = ${status}, settled = 1, cost = ${cost}, queue_position = NULL,
        error_type = ${error_type ?? null}, error = ${error?.slice(0, errorMax) ?? null},
        output = ${output === undefined ? null : JSON.stringify(output)},
        inference_time = ${inference_time ?? null}, updated_at = ${now}
        WHERE id = ${id} AND settled = 0 RETURNING id`,
      1
    )
})

export const jobOf = (row: Row): Job => ({
  request_id: row.id,
  model: row.model,
  provider: row.provider,
  status: row.status === "SUBMITTING" ? "IN_QUEUE" : row.status,
  queue_position: row.queue_position,
  units: row.units,
  unit: row.unit,
  quote: fromRow(row.quote),
  charge: row.settled === 1 ? { usage_id: Ids.usageOf(row.call), charged: fromRow(row.cost) } : undefined,
  inference_time: row.inference_time,
  // The output can be several megabytes long, so it is parsed only when it is read.
  get output() {
    return row.output === null ? null : (JSON.parse(row.output) as Record<string, unknown>)
  },
  error: row.error,
  error_type: row.error_type,
  type: row.type,
  created_at: row.created_at
})
