/**
 * The index of an account's media jobs holds all that a list shows. The row of a job may hold megabytes of what it made, and SQLite reads
 * through them to the columns after it.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `DROP INDEX tollgate_media_jobs_account`,
  `CREATE INDEX tollgate_media_jobs_account ON tollgate_media_jobs (account_id, route, id, tenant_id, holder, status, call, type, model,
    provider, upstream, endpoint, vendor_id, queue_position, units, unit, quote, settled, cost, inference_time, error, error_type,
    cancel_requested, created_at)`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
