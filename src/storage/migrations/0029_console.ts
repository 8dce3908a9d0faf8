/** Indexes for the console's lists: an account's generation jobs and a tenant's payments, newest first. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const indexes = [
  `CREATE INDEX tollgate_media_jobs_account ON tollgate_media_jobs (account_id, route, id)`,
  `CREATE INDEX tollgate_payments_payments_tenant ON tollgate_payments_payments (tenant_id, created_at, id)`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(indexes, (index) => sql.unsafe(index), { discard: true })
)
