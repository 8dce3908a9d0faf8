/** Passkeys of people, and the open challenges of registrations and sign-ins. */
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
  `CREATE INDEX tollgate_passkeys_challenges_account ON tollgate_passkeys_challenges (account_id)`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
