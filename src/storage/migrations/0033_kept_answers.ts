/** An index for summing the size of an account's stored responses for Idempotency-Keys, and for finding the oldest of them. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe(`CREATE INDEX tollgate_idempotency_keys_kept
    ON tollgate_idempotency_keys (account_id, answered_at, length(body)) WHERE body IS NOT NULL`)
)
