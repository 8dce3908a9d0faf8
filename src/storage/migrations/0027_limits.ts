/** The limits of API keys: spending, end date and allowed models. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const statements = [
  // One row per key with a limit. Calls update the figures in this row, so that a reservation sees all of them.
  `CREATE TABLE tollgate_ledger_limits (
    application_id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    period TEXT NOT NULL CHECK (period IN ('month', 'total')),
    start INTEGER NOT NULL,
    spent INTEGER NOT NULL CHECK (spent >= 0),
    reserved INTEGER NOT NULL CHECK (reserved >= 0),
    ceiling INTEGER NOT NULL CHECK (ceiling >= amount AND ceiling >= spent + reserved)
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_ledger_limits_tenant ON tollgate_ledger_limits (tenant_id)`,
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN expires_at INTEGER`,
  // A JSON array.
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN allowed_models TEXT`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
)
