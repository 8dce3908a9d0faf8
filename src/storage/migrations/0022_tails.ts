/**
 * Lets rollups lag behind the records: they now include a tenant's records up to its watermark instead of all records. A bucket now stores only where
 * an owner's rows begin in it, and the index of the rows shows where they end. Before this migration, each commit rewrote the bucket row of every
 * busy owner.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_usage_watermarks (
    tenant_id TEXT PRIMARY KEY,
    number INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `INSERT INTO tollgate_usage_watermarks SELECT tenant_id, records FROM tollgate_usage_counters`,
  `DROP TABLE tollgate_usage_counters`,

  `CREATE TABLE tollgate_ledger_buckets_next (
    billing_account_id TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    first_number INTEGER NOT NULL,
    PRIMARY KEY (billing_account_id, bucket)
  ) STRICT, WITHOUT ROWID`,
  `INSERT INTO tollgate_ledger_buckets_next SELECT billing_account_id, bucket, first_number FROM tollgate_ledger_buckets`,
  `DROP TABLE tollgate_ledger_buckets`,
  `ALTER TABLE tollgate_ledger_buckets_next RENAME TO tollgate_ledger_buckets`,

  `CREATE TABLE tollgate_usage_buckets_next (
    tenant_id TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    first_number INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, bucket)
  ) STRICT, WITHOUT ROWID`,
  `INSERT INTO tollgate_usage_buckets_next SELECT tenant_id, bucket, first_number, first_at FROM tollgate_usage_buckets`,
  `DROP TABLE tollgate_usage_buckets`,
  `ALTER TABLE tollgate_usage_buckets_next RENAME TO tollgate_usage_buckets`,

  // Finds the tenants whose calls a payer has paid for, and the tenants with calls that others have paid for.
  `CREATE INDEX tollgate_usage_dimensions_payer ON tollgate_usage_dimensions (billing_account_id, tenant_id)`,
  `CREATE INDEX tollgate_usage_dimensions_pooled ON tollgate_usage_dimensions (tenant_id)
    WHERE billing_source_tenant_id <> tenant_id`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
