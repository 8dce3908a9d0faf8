/** Operators' management keys, and the external ids that the callers of these keys give users, tenants and keys. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_operator_keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    key_hash TEXT NOT NULL UNIQUE,
    -- The first characters of the key, to tell it by.
    key_prefix TEXT NOT NULL,
    -- Separated by spaces.
    scopes TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_used_at INTEGER,
    ended_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_provisioning_externals (
    kind TEXT NOT NULL CHECK (kind IN ('person', 'tenant', 'key')),
    external_id TEXT NOT NULL,
    -- Of the account, tenant or application.
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- Credit is given once for an external id, also if it is removed and used again.
    credited_at INTEGER,
    removed_at INTEGER,
    PRIMARY KEY (kind, external_id)
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_provisioning_externals_id ON tollgate_provisioning_externals (kind, id) WHERE removed_at IS NULL`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
