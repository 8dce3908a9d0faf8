/** Passkeys, open WebAuthn challenges, and the users and groups of a directory (SCIM). */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_passkeys_passkeys (
    id TEXT PRIMARY KEY,
    credential_id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL,
    public_key TEXT NOT NULL,
    counter INTEGER NOT NULL,
    transports TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_passkeys_passkeys_account ON tollgate_passkeys_passkeys (account_id, id)`,
  // A challenge belongs to an account that registers a passkey, or to a browser that signs in.
  `CREATE TABLE tollgate_passkeys_challenges (
    hash TEXT PRIMARY KEY,
    account_id TEXT,
    browser_hash TEXT,
    expires_at INTEGER NOT NULL,
    CHECK ((account_id IS NULL) <> (browser_hash IS NULL))
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_passkeys_challenges_age ON tollgate_passkeys_challenges (expires_at)`,
  `CREATE INDEX tollgate_passkeys_challenges_account ON tollgate_passkeys_challenges (account_id)`,
  `CREATE TABLE tollgate_scim_users (
    account_id TEXT PRIMARY KEY,
    -- In lower case.
    user_name TEXT NOT NULL,
    external_id TEXT,
    given_name TEXT NOT NULL,
    family_name TEXT NOT NULL,
    display_name TEXT NOT NULL,
    email TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE UNIQUE INDEX tollgate_scim_users_name ON tollgate_scim_users (user_name) WHERE deleted_at IS NULL`,
  `CREATE INDEX tollgate_scim_users_external ON tollgate_scim_users (external_id) WHERE deleted_at IS NULL`,
  `CREATE TABLE tollgate_scim_groups (
    id TEXT PRIMARY KEY,
    display_name TEXT NOT NULL UNIQUE,
    external_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_scim_members (
    group_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    PRIMARY KEY (group_id, account_id)
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_scim_members_account ON tollgate_scim_members (account_id)`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
