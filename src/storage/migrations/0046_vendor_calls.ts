/** Adds the vendor's id of the request and the vendor's reported cost to usage records. Earlier records contain neither. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  "ALTER TABLE tollgate_usage_records ADD COLUMN vendor_request TEXT",
  "ALTER TABLE tollgate_usage_records ADD COLUMN vendor_cost INTEGER CHECK (vendor_cost >= 0)"
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
