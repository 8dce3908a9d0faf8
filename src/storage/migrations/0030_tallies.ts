/**
 * What runs of a tenant's records come to, for series and filters; and the entries of a billing account that are no charges, which charges do
 * not touch. Tallies of records that are there already are written by the service, in the background.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // Of each stretch of a tenant's records what it comes to, as bytes: by dimensions, of which kind each record is, by hours and dimensions.
  `CREATE TABLE tollgate_usage_tallies (
    tenant_id TEXT NOT NULL,
    level INTEGER NOT NULL,
    run INTEGER NOT NULL,
    totals BLOB NOT NULL,
    kinds BLOB,
    sums BLOB NOT NULL
  ) STRICT`,
  `CREATE UNIQUE INDEX tollgate_usage_tallies_run ON tollgate_usage_tallies (tenant_id, level, run)`,
  `CREATE INDEX tollgate_usage_dimensions_tenant ON tollgate_usage_dimensions (tenant_id)`,
  `CREATE INDEX tollgate_ledger_entries_sources ON tollgate_ledger_entries (billing_account_id, number, source)
    WHERE source IS NOT NULL`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
