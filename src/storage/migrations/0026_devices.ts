/** The device flow: the clients that may use it, and the codes of waiting devices. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const changes = [
  `ALTER TABLE tollgate_auth_clients ADD COLUMN device INTEGER NOT NULL DEFAULT 0 CHECK (device IN (0, 1))`,
  `CREATE TABLE tollgate_auth_device_codes (
    hash TEXT PRIMARY KEY,
    user_code_hash TEXT NOT NULL,
    client_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    -- How long the application waits between two questions, in milliseconds, and when it last asked.
    pause_ms INTEGER NOT NULL,
    polled_at INTEGER,
    decision TEXT CHECK (decision IN ('allow', 'deny')),
    account_id TEXT,
    tenant_id TEXT,
    used_at INTEGER,
    family_id TEXT
  ) STRICT, WITHOUT ROWID`,
  `CREATE UNIQUE INDEX tollgate_auth_device_codes_user ON tollgate_auth_device_codes (user_code_hash)`,
  `CREATE INDEX tollgate_auth_device_codes_age ON tollgate_auth_device_codes (expires_at)`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(changes, (change) => sql.unsafe(change), { discard: true })
)
