/** Further ways to sign in: team memberships from groups, sign-in links by email, used sign-ins, and the users of a directory. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // A membership through an identity provider's group ends when the user leaves the group.
  `CREATE TABLE tollgate_tenants_group_members (
    account_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    PRIMARY KEY (account_id, tenant_id, provider)
  ) STRICT, WITHOUT ROWID`,
  // An open invitation to a new user's address admits them.
  `CREATE INDEX tollgate_tenants_invites_address ON tollgate_tenants_invites (email) WHERE status = 'pending'`,
  // The tokens of links, and the cookies of the browsers that requested them, are stored as hashes.
  `CREATE TABLE tollgate_auth_links (
    token_hash TEXT PRIMARY KEY,
    browser_hash TEXT NOT NULL,
    email TEXT NOT NULL,
    destination TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_auth_links_email ON tollgate_auth_links (email, created_at)`,
  `CREATE INDEX tollgate_auth_links_age ON tollgate_auth_links (expires_at)`,
  // A sign-in at an identity provider can be completed only once across all nodes.
  `CREATE TABLE tollgate_auth_returns (
    hash TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_auth_returns_age ON tollgate_auth_returns (expires_at)`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
