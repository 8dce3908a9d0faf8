/** Columns that explain a charge: its price version, and the reason why its payer was used. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  `ALTER TABLE tollgate_usage_records ADD COLUMN billing_source_why TEXT`,
  `ALTER TABLE tollgate_usage_records ADD COLUMN price TEXT`,
  // `lines` is a JSON array of `{ quantity, unit, usd }`. `id` is derived from `lines`, so equal prices are the same version.
  `CREATE TABLE tollgate_price_versions (
    id TEXT PRIMARY KEY,
    lines TEXT NOT NULL,
    first_used_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
