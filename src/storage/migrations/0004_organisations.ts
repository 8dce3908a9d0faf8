/** Organizations: plans, invitations, and settings for spending and billing. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  // A tenant without a row has no plan.
  `CREATE TABLE tollgate_tenants_plans (
    tenant_id TEXT PRIMARY KEY,
    plan TEXT NOT NULL CHECK (plan IN ('none', 'team')),
    status TEXT NOT NULL CHECK (status IN ('active', 'past_due', 'canceled')),
    seats INTEGER NOT NULL CHECK (seats >= 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  // Only the email contains the token.
  `CREATE TABLE tollgate_tenants_invites (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    email TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    token_hash TEXT NOT NULL UNIQUE,
    invited_by TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'accepted', 'revoked')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_tenants_invites_tenant ON tollgate_tenants_invites (tenant_id, id)`,
  `CREATE UNIQUE INDEX tollgate_tenants_invites_pending ON tollgate_tenants_invites (tenant_id, email) WHERE status = 'pending'`,
  // `billing_emails` is a JSON array. `member_spend_enabled` is null if it was never set.
  `CREATE TABLE tollgate_billing_settings (
    tenant_id TEXT PRIMARY KEY,
    billing_emails TEXT NOT NULL,
    member_spend_enabled INTEGER CHECK (member_spend_enabled IN (0, 1)),
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
