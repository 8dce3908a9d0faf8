/** API keys have limits: of what they may spend, of when they end, and of the models that they may call. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const statements = [
  // Of the keys that have one. What calls change of it stands in the same row, so that one that reserves sees all of it.
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
