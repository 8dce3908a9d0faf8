/**
 * Gives Idempotency-Keys holders, so that an application cannot use another application's keys. All holders of an account can still use earlier keys.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_idempotency_keys_held (
    tenant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    holder TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    run TEXT NOT NULL,
    call TEXT,
    status INTEGER,
    headers TEXT,
    body BLOB,
    created_at INTEGER NOT NULL,
    answered_at INTEGER,
    PRIMARY KEY (tenant_id, account_id, key, holder)
  ) STRICT`,
  `INSERT INTO tollgate_idempotency_keys_held
    SELECT tenant_id, account_id, 'any', key, request_hash, run, call, status, headers, body, created_at, answered_at
    FROM tollgate_idempotency_keys`,
  `DROP TABLE tollgate_idempotency_keys`,
  `ALTER TABLE tollgate_idempotency_keys_held RENAME TO tollgate_idempotency_keys`,
  `CREATE INDEX tollgate_idempotency_keys_age ON tollgate_idempotency_keys (created_at)`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
