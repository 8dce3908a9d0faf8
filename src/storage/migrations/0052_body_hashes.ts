/** Adds the SHA-256 hashes of the request and response bodies to usage records. Earlier records contain neither. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  "ALTER TABLE tollgate_usage_records ADD COLUMN request_hash BLOB",
  "ALTER TABLE tollgate_usage_records ADD COLUMN answer_hash BLOB"
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
