/** The billing sources that users have chosen, and the index that finds a user's payers. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  // `pinned` is a billing account, or null for the automatic choice.
  `CREATE TABLE tollgate_pooling_selections (
    account_id TEXT PRIMARY KEY,
    pinned TEXT,
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  // The indexed columns of a row never change, so updating the sums does not touch the index.
  `CREATE INDEX tollgate_usage_by_payer_account ON tollgate_usage_by_payer (account_id, start)`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
