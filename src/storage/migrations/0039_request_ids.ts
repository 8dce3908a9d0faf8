/** Adds the request's `X-Request-Id` to usage records. In earlier records, the column is NULL. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe("ALTER TABLE tollgate_usage_records ADD COLUMN request_id TEXT")
)
