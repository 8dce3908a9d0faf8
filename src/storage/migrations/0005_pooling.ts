/** Which billing source people chose, and the way from a person to those who paid for them. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  // `pinned` is a billing account; null: automatic.
  `CREATE TABLE tollgate_pooling_selections (
    account_id TEXT PRIMARY KEY,
    pinned TEXT,
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  // Its columns are fixed once a row is there, so adding to a sum does not touch it.
  `CREATE INDEX tollgate_usage_by_payer_account ON tollgate_usage_by_payer (account_id, start)`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
