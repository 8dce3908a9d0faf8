/** What the operator needs over HTTP: sessions, the log of actions, grants by reference, suspended users, and indexes for searching. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const statements = [
  // Codes and cookies are stored as hashes. A row is a link until its code is used, and a session after that.
  `CREATE TABLE tollgate_operator_sessions (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('browser', 'token')),
    code_hash TEXT UNIQUE,
    cookie_hash TEXT UNIQUE,
    created_at INTEGER NOT NULL,
    signed_in_at INTEGER,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_operator_sessions_age ON tollgate_operator_sessions (expires_at)`,
  // This table is append-only. 'details' is a JSON object.
  `CREATE TABLE tollgate_operator_audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    operator TEXT NOT NULL,
    via TEXT NOT NULL CHECK (via IN ('console', 'token', 'command')),
    action TEXT NOT NULL,
    tenant_id TEXT,
    account_id TEXT,
    subject TEXT,
    result TEXT NOT NULL CHECK (result IN ('done', 'refused')),
    details TEXT NOT NULL
  ) STRICT`,
  `CREATE INDEX tollgate_operator_audit_tenant ON tollgate_operator_audit (tenant_id, id) WHERE tenant_id IS NOT NULL`,
  `CREATE INDEX tollgate_operator_audit_account ON tollgate_operator_audit (account_id, id) WHERE account_id IS NOT NULL`,
  `CREATE INDEX tollgate_operator_audit_operator ON tollgate_operator_audit (operator, id)`,
  // There is one grant per reference.
  `CREATE TABLE tollgate_operator_grants (
    reference TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount > 0),
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_tenants_suspensions (
    account_id TEXT PRIMARY KEY,
    suspended_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_tenants_tenants_name ON tollgate_tenants_tenants (lower(name))`,
  `CREATE INDEX tollgate_tenants_accounts_name ON tollgate_tenants_accounts (lower(name))`,
  `CREATE INDEX tollgate_tenants_accounts_address ON tollgate_tenants_accounts (lower(email))`,
  `CREATE INDEX tollgate_tenants_applications_name ON tollgate_tenants_applications (lower(name))`,
  `CREATE INDEX tollgate_tenants_applications_prefix ON tollgate_tenants_applications (key_prefix)`,
  `CREATE INDEX tollgate_auth_families_account ON tollgate_auth_families (account_id) WHERE revoked_at IS NULL`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
)
