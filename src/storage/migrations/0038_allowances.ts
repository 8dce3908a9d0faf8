/** Allowances and vouchers. An allowance is granted once per period, and a tenant can redeem a voucher at most once. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // The terms are stored in the row, or in a plan in the configuration.
  `CREATE TABLE tollgate_allowances_allowances (
    tenant_id TEXT PRIMARY KEY,
    plan TEXT,
    amount INTEGER CHECK (amount > 0),
    period TEXT CHECK (period IN ('week', 'month')),
    rollover TEXT CHECK (rollover IN ('none', 'all', 'up_to')),
    up_to INTEGER CHECK (up_to > 0),
    -- Counts every change, so that a grant is made by the terms that it read.
    revision INTEGER NOT NULL,
    -- Counts the times that it began. A grant of an earlier one is not taken back.
    era INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    ended_at INTEGER,
    CHECK ((plan IS NULL) = (amount IS NOT NULL AND period IS NOT NULL AND rollover IS NOT NULL))
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_allowances_grants (
    tenant_id TEXT NOT NULL,
    period TEXT NOT NULL CHECK (period IN ('week', 'month')),
    number INTEGER NOT NULL,
    era INTEGER NOT NULL,
    reference TEXT NOT NULL UNIQUE,
    amount INTEGER NOT NULL CHECK (amount > 0),
    -- Counts the grants of the tenant.
    place INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, period, number)
  ) STRICT, WITHOUT ROWID`,
  `CREATE UNIQUE INDEX tollgate_allowances_grants_place ON tollgate_allowances_grants (tenant_id, place)`,
  `CREATE TABLE tollgate_vouchers_vouchers (
    id TEXT PRIMARY KEY,
    code_hash TEXT NOT NULL UNIQUE,
    -- The first characters of the code, to tell it by.
    code_prefix TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount > 0),
    uses_max INTEGER NOT NULL CHECK (uses_max > 0),
    uses INTEGER NOT NULL CHECK (uses >= 0 AND uses <= uses_max),
    description TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    ended_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_vouchers_uses (
    voucher_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    reference TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    PRIMARY KEY (voucher_id, tenant_id)
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
