/** A usage record says which of its tokens are billed apart, as JSON; none of those that are there has any. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe("ALTER TABLE tollgate_usage_records ADD COLUMN token_details TEXT")
)
