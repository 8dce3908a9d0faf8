/** A row that is updated to check whether the database can be written. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(
  SqlClient,
  (sql) => sql`CREATE TABLE tollgate_ops_readiness (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    checked_at INTEGER NOT NULL
  ) STRICT`
)
