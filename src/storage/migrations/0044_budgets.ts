/**
 * Budgets, which replace the separate limits of API keys. Reservations and records list the budgets that count their calls. Dimensions now include a
 * call's run, tags and end user.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const columns = `account_id, tenant_id, application_id, usage_type, endpoint, model, provider, price, billing_account_id,
  billing_source_tenant_id, billing_source_kind, billing_source_why`

const steps = [
  `CREATE TABLE tollgate_ledger_budgets (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('key', 'run', 'budget')),
    -- NULL: of all tenants.
    tenant_id TEXT,
    anchor TEXT NOT NULL,
    period TEXT NOT NULL CHECK (period IN ('minute', 'hour', 'day', 'week', 'month', 'total')),
    usd INTEGER CHECK (usd >= 0),
    -- The other terms, as JSON.
    terms TEXT NOT NULL,
    start INTEGER NOT NULL,
    spent INTEGER NOT NULL CHECK (spent >= 0),
    reserved INTEGER NOT NULL CHECK (reserved >= 0),
    ceiling INTEGER CHECK (ceiling >= spent + reserved),
    tokens INTEGER NOT NULL CHECK (tokens >= 0),
    tokens_reserved INTEGER NOT NULL CHECK (tokens_reserved >= 0),
    requests INTEGER NOT NULL CHECK (requests >= 0),
    open INTEGER NOT NULL CHECK (open >= 0),
    crossed INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `INSERT INTO tollgate_ledger_budgets
    SELECT application_id, 'key', tenant_id, application_id, period, amount,
      '{"name":"","applies_to":{},"mode":"refuse","notify_at":[],"by_operator":false,"created_by":"","created_at":0,"limit":{},"raises":[]}',
      start, spent, reserved, ceiling, 0, 0, 0, 0, 0 FROM tollgate_ledger_limits`,
  `DROP TABLE tollgate_ledger_limits`,
  `CREATE INDEX tollgate_ledger_budgets_anchor ON tollgate_ledger_budgets (anchor)`,
  `CREATE INDEX tollgate_ledger_budgets_tenant ON tollgate_ledger_budgets (tenant_id, kind)`,
  `CREATE INDEX tollgate_ledger_budgets_crossed ON tollgate_ledger_budgets (id) WHERE crossed > 0`,
  `ALTER TABLE tollgate_ledger_reservations ADD COLUMN budgets TEXT`,
  `ALTER TABLE tollgate_ledger_reservations ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0`,
  `ALTER TABLE tollgate_usage_records ADD COLUMN budgets TEXT`,
  `CREATE TABLE tollgate_usage_dimensions_next (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    application_id TEXT NOT NULL,
    usage_type TEXT NOT NULL CHECK (usage_type IN ('inference', 'tool')),
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    price TEXT NOT NULL,
    billing_account_id TEXT NOT NULL,
    billing_source_tenant_id TEXT NOT NULL,
    billing_source_kind TEXT NOT NULL CHECK (billing_source_kind IN ('own', 'team')),
    billing_source_why TEXT NOT NULL,
    run_id TEXT NOT NULL DEFAULT '',
    tags TEXT NOT NULL DEFAULT '',
    end_user TEXT NOT NULL DEFAULT '',
    UNIQUE (${columns}, run_id, tags, end_user)
  ) STRICT`,
  `INSERT INTO tollgate_usage_dimensions_next (number, ${columns}) SELECT number, ${columns} FROM tollgate_usage_dimensions ORDER BY number`,
  `DROP TABLE tollgate_usage_dimensions`,
  `ALTER TABLE tollgate_usage_dimensions_next RENAME TO tollgate_usage_dimensions`,
  `CREATE INDEX tollgate_usage_dimensions_payer ON tollgate_usage_dimensions (billing_account_id, tenant_id)`,
  `CREATE INDEX tollgate_usage_dimensions_pooled ON tollgate_usage_dimensions (tenant_id)
    WHERE billing_source_tenant_id <> tenant_id`,
  `CREATE INDEX tollgate_usage_dimensions_tenant ON tollgate_usage_dimensions (tenant_id)`,
  // The tags of keys, as lines of `name=value`, and whether a tenant has enabled tags for the sessions and agents of coding agents.
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN tags TEXT`,
  `ALTER TABLE tollgate_tenants_tenants ADD COLUMN attribution_tags INTEGER NOT NULL DEFAULT 0 CHECK (attribution_tags IN (0, 1))`,
  // The runs of API keys.
  `CREATE TABLE tollgate_runs (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    application_id TEXT NOT NULL,
    -- NULL: the API key made it.
    parent TEXT,
    -- The ids of the runs that it descends from, and its own, with '/' between them.
    path TEXT NOT NULL,
    level INTEGER NOT NULL CHECK (level >= 1),
    name TEXT NOT NULL,
    key_hash TEXT NOT NULL,
    key_prefix TEXT NOT NULL,
    models TEXT,
    tags TEXT NOT NULL,
    end_user TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE UNIQUE INDEX tollgate_runs_key ON tollgate_runs (key_hash)`,
  `CREATE UNIQUE INDEX tollgate_runs_path ON tollgate_runs (path)`,
  `CREATE INDEX tollgate_runs_application ON tollgate_runs (application_id, id)`,
  `CREATE INDEX tollgate_runs_account ON tollgate_runs (tenant_id, account_id, id)`,
  `CREATE INDEX tollgate_runs_open ON tollgate_runs (tenant_id, expires_at) WHERE ended_at IS NULL`,
  `CREATE INDEX tollgate_runs_due ON tollgate_runs (expires_at) WHERE ended_at IS NULL`,
  `CREATE INDEX tollgate_runs_ended ON tollgate_runs (ended_at) WHERE level = 1 AND ended_at IS NOT NULL`,
  `CREATE INDEX tollgate_usage_dimensions_run ON tollgate_usage_dimensions (run_id) WHERE run_id <> ''`,
  `CREATE INDEX tollgate_usage_records_budgeted ON tollgate_usage_records (dimensions) WHERE budgets IS NOT NULL`,
  // The tables of the module `budgets`.
  `CREATE TABLE tollgate_budgets_budgets (
    id TEXT PRIMARY KEY,
    -- NULL: of all tenants.
    tenant_id TEXT,
    key_id TEXT,
    created_by TEXT NOT NULL,
    by_operator INTEGER NOT NULL CHECK (by_operator IN (0, 1)),
    template_id TEXT,
    template_revision INTEGER,
    revision INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_budgets_budgets_tenant ON tollgate_budgets_budgets (tenant_id)`,
  `CREATE INDEX tollgate_budgets_budgets_operator ON tollgate_budgets_budgets (id) WHERE by_operator = 1`,
  `CREATE UNIQUE INDEX tollgate_budgets_budgets_template ON tollgate_budgets_budgets (template_id, tenant_id)
    WHERE template_id IS NOT NULL`,
  `CREATE TABLE tollgate_budgets_templates (
    id TEXT PRIMARY KEY,
    -- NULL: of each new tenant.
    plan TEXT,
    -- As JSON.
    terms TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_budgets_raises (
    budget_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    usd INTEGER NOT NULL CHECK (usd > 0),
    until INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (budget_id, number)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_budgets_notices (
    budget_id TEXT NOT NULL,
    -- Of the period.
    start INTEGER NOT NULL,
    -- Millionths of the limit.
    threshold INTEGER NOT NULL,
    told_at INTEGER NOT NULL,
    PRIMARY KEY (budget_id, start, threshold)
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
