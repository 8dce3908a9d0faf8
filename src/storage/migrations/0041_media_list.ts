/**
 * Adds all columns that a list shows to the index of an account's media jobs. A job's row may contain megabytes of output. SQLite would have to read
 * the output to reach later columns.
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
