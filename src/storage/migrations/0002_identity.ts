/** Accounts and their identities, tenants and memberships, keys, sign-ins and signing keys. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  `CREATE TABLE tollgate_tenants_accounts (
    id TEXT PRIMARY KEY,
    home_tenant_id TEXT NOT NULL,
    email TEXT NOT NULL,
    name TEXT NOT NULL,
    email_verified INTEGER NOT NULL CHECK (email_verified IN (0, 1)),
    granted_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  // There is one account per verified address, so a second provider that verifies the address identifies the same user.
  `CREATE UNIQUE INDEX tollgate_tenants_accounts_email ON tollgate_tenants_accounts (email) WHERE email_verified = 1`,
  `CREATE TABLE tollgate_tenants_identities (
    provider TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id TEXT NOT NULL,
    email TEXT NOT NULL,
    PRIMARY KEY (provider, subject)
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_tenants_identities_account ON tollgate_tenants_identities (account_id)`,
  `CREATE TABLE tollgate_tenants_tenants (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_tenants_memberships (
    account_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    status TEXT NOT NULL CHECK (status IN ('active', 'invited', 'suspended', 'removed')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, tenant_id)
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_tenants_memberships_tenant ON tollgate_tenants_memberships (tenant_id, account_id)`,
  `CREATE TABLE tollgate_tenants_applications (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    key_hash TEXT NOT NULL UNIQUE,
    key_prefix TEXT NOT NULL,
    last_used_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_tenants_applications_tenant ON tollgate_tenants_applications (tenant_id, id)`,

  // A family is one sign-in, with all its refresh tokens.
  `CREATE TABLE tollgate_auth_families (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    team_first INTEGER NOT NULL CHECK (team_first IN (0, 1)),
    signed_in_at INTEGER NOT NULL,
    revoked_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_auth_refresh_tokens (
    hash TEXT PRIMARY KEY,
    family_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_auth_refresh_tokens_family ON tollgate_auth_refresh_tokens (family_id)`,
  `CREATE TABLE tollgate_auth_signing_keys (
    kid TEXT PRIMARY KEY,
    public TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
