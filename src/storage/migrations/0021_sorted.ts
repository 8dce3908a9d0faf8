/** Adds sorted runs of records, ordered by cost, tokens and latency. They are written in the background. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // The number of a tenant's runs at each level. Records after the last run are not in a run yet.
  `CREATE TABLE tollgate_usage_sorted_runs (
    tenant_id TEXT NOT NULL,
    level INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, level)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_usage_sorted_blocks (
    tenant_id TEXT NOT NULL,
    sort TEXT NOT NULL,
    level INTEGER NOT NULL,
    run INTEGER NOT NULL,
    value INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    places BLOB NOT NULL
  ) STRICT`,
  `CREATE UNIQUE INDEX tollgate_usage_sorted_blocks_place
    ON tollgate_usage_sorted_blocks (tenant_id, sort, level, run, value, seq)`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
