/**
 * Totals of each run of a tenant's records, for series and filters, and a partial index of a billing account's entries other than charges. The
 * service writes the totals for existing records in the background.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // The totals of each run of a tenant's records, as bytes: sums by dimensions, the kind of each record, sums by hour and dimensions.
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
