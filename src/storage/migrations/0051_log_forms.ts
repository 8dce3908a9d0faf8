/** The ranges of entries whose leaves in the log have form 2. Leaves that are already in the log keep form 1. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_log_forms (
    -- The rows of the first and the last entry.
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL CHECK (last >= first)
  ) STRICT`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
