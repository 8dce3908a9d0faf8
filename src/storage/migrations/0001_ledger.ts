/**
 * The books: billing accounts, their entries, the reservations of open calls, and usage records with their sums. Money is INTEGER nano-USD. Entries
 * and records are append-only, in the order of `seq`.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const sums = `
  requests INTEGER NOT NULL,
  successes INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  units REAL NOT NULL,
  cost INTEGER NOT NULL CHECK (cost >= 0),
  latency_ms INTEGER NOT NULL`

const tables = [
  `CREATE TABLE tollgate_ledger_accounts (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
    giftable INTEGER NOT NULL CHECK (giftable >= 0),
    granted INTEGER NOT NULL CHECK (granted >= 0),
    held INTEGER NOT NULL CHECK (held >= 0),
    reserved INTEGER NOT NULL CHECK (reserved >= 0 AND reserved <= giftable + granted),
    funded INTEGER NOT NULL CHECK (funded IN (0, 1)),
    entries INTEGER NOT NULL CHECK (entries >= 0)
  ) STRICT, WITHOUT ROWID`,
  `CREATE UNIQUE INDEX tollgate_ledger_accounts_tenant ON tollgate_ledger_accounts (tenant_id)`,

  `CREATE TABLE tollgate_ledger_reservations (
    id TEXT PRIMARY KEY,
    billing_account_id TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    at INTEGER NOT NULL,
    run TEXT NOT NULL,
    source TEXT NOT NULL,
    facts TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,

  `CREATE TABLE tollgate_ledger_entries (
    seq INTEGER PRIMARY KEY,
    billing_account_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('credit', 'debit')),
    amount INTEGER NOT NULL CHECK (amount > 0),
    balance INTEGER NOT NULL CHECK (balance >= 0),
    giftable INTEGER NOT NULL CHECK (giftable >= 0 AND giftable <= balance),
    source TEXT,
    reference_id TEXT NOT NULL,
    description TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT`,
  // The bucket comes first, so that every insert goes to the newest pages and its cost does not grow with the table.
  `CREATE UNIQUE INDEX tollgate_ledger_entries_account ON tollgate_ledger_entries (seq >> 16, billing_account_id, number)`,
  // The buckets of that index in which an account has entries.
  `CREATE TABLE tollgate_ledger_buckets (
    billing_account_id TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    first_number INTEGER NOT NULL,
    last_number INTEGER NOT NULL,
    PRIMARY KEY (billing_account_id, bucket)
  ) STRICT, WITHOUT ROWID`,

  `CREATE TABLE tollgate_usage_records (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    account_id TEXT NOT NULL,
    application_id TEXT,
    usage_type TEXT NOT NULL CHECK (usage_type IN ('inference', 'tool')),
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    units REAL NOT NULL,
    cost INTEGER NOT NULL CHECK (cost >= 0),
    uncollected INTEGER NOT NULL CHECK (uncollected >= 0),
    reserved INTEGER NOT NULL,
    usage_source TEXT NOT NULL,
    latency_ms INTEGER NOT NULL,
    success INTEGER NOT NULL CHECK (success IN (0, 1)),
    error_type TEXT,
    billing_account_id TEXT NOT NULL,
    billing_source_tenant_id TEXT NOT NULL,
    billing_source_kind TEXT NOT NULL CHECK (billing_source_kind IN ('own', 'team'))
  ) STRICT`,
  // The last safeguard against charging a call twice. Ids begin with their time, so this index, too, grows at its end.
  `CREATE UNIQUE INDEX tollgate_usage_records_id ON tollgate_usage_records (id)`,
  `CREATE UNIQUE INDEX tollgate_usage_records_tenant ON tollgate_usage_records (seq >> 16, tenant_id, number, at)`,
  `CREATE TABLE tollgate_usage_buckets (
    tenant_id TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    first_number INTEGER NOT NULL,
    last_number INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, bucket)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_usage_counters (
    tenant_id TEXT PRIMARY KEY,
    records INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,

  `CREATE TABLE tollgate_usage_by_tenant (
    tenant_id TEXT NOT NULL,
    start INTEGER NOT NULL,
    application_id TEXT NOT NULL,
    usage_type TEXT NOT NULL,
    provider TEXT NOT NULL,
    ${sums},
    PRIMARY KEY (tenant_id, start, application_id, usage_type, provider)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_usage_by_caller (
    tenant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    grain INTEGER NOT NULL,
    start INTEGER NOT NULL,
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    ${sums},
    PRIMARY KEY (tenant_id, account_id, grain, start, model, endpoint)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_usage_by_payer (
    billing_account_id TEXT NOT NULL,
    start INTEGER NOT NULL,
    account_id TEXT NOT NULL,
    billing_source_kind TEXT NOT NULL,
    ${sums},
    PRIMARY KEY (billing_account_id, start, account_id, billing_source_kind)
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
