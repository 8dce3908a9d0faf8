/** Usage records store the `X-Request-Id` of their request. Earlier records have none. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe("ALTER TABLE tollgate_usage_records ADD COLUMN request_id TEXT")
)
