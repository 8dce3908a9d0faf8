/** Lets usage records store the tokens that are billed separately, as JSON. In existing records, the column is empty. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe("ALTER TABLE tollgate_usage_records ADD COLUMN token_details TEXT")
)
