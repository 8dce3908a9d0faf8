/** A usage record names the request that made the call, by the value of `X-Request-Id`. Earlier records name none. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe("ALTER TABLE tollgate_usage_records ADD COLUMN request_id TEXT")
)
