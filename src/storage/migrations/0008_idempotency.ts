/** The Idempotency-Keys of metered calls, with the responses to replay. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  // `call` is set at the admission. If it is not set, no provider was reached.
  `CREATE TABLE tollgate_idempotency_keys (
    tenant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    run TEXT NOT NULL,
    call TEXT,
    status INTEGER,
    headers TEXT,
    body BLOB,
    created_at INTEGER NOT NULL,
    answered_at INTEGER,
    PRIMARY KEY (tenant_id, account_id, key)
  ) STRICT`,
  `CREATE INDEX tollgate_idempotency_keys_age ON tollgate_idempotency_keys (created_at)`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
