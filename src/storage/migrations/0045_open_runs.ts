/** Adds `ended_at` to an index. The writer counts a tenant's open runs before it opens another, and can now do so from the index alone. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `DROP INDEX tollgate_runs_open`,
  `CREATE INDEX tollgate_runs_open ON tollgate_runs (tenant_id, expires_at, ended_at) WHERE ended_at IS NULL`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
