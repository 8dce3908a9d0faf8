/** What the stored answers of an account's Idempotency-Keys come to, and which of them are the oldest. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe(`CREATE INDEX tollgate_idempotency_keys_kept
    ON tollgate_idempotency_keys (account_id, answered_at, length(body)) WHERE body IS NOT NULL`)
)
