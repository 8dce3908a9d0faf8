/** Clients that sign users in or act for a website, their codes and tokens, and messages to the operator. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  // `redirect_uris` is a JSON array.
  `CREATE TABLE tollgate_auth_clients (
    client_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('app', 'oauth', 'web')),
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  // Codes and tokens are stored only as hashes.
  `CREATE TABLE tollgate_auth_codes (
    hash TEXT PRIMARY KEY,
    client_id TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    account_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    challenge TEXT NOT NULL,
    scope TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    family_id TEXT
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_auth_codes_age ON tollgate_auth_codes (expires_at)`,
  `CREATE TABLE tollgate_auth_client_tokens (
    hash TEXT PRIMARY KEY,
    client_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_auth_client_tokens_age ON tollgate_auth_client_tokens (expires_at)`,
  `CREATE INDEX tollgate_auth_refresh_tokens_age ON tollgate_auth_refresh_tokens (expires_at)`,
  `CREATE TABLE tollgate_contact_messages (
    id TEXT PRIMARY KEY,
    client_id TEXT NOT NULL,
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    inquiry_type TEXT NOT NULL,
    message TEXT NOT NULL,
    subscribe INTEGER NOT NULL CHECK (subscribe IN (0, 1)),
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
