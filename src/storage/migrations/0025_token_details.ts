/** Usage records store their separately billed tokens as JSON. Existing records have none. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe("ALTER TABLE tollgate_usage_records ADD COLUMN token_details TEXT")
)
