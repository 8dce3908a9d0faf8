/** A usage record has the vendor's id of its request, and the cost that the vendor reported. Earlier records have neither. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  "ALTER TABLE tollgate_usage_records ADD COLUMN vendor_request TEXT",
  "ALTER TABLE tollgate_usage_records ADD COLUMN vendor_cost INTEGER CHECK (vendor_cost >= 0)"
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
