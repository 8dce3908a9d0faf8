/** Payments, with the requests to the processor, its events, and auto-reload. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  `CREATE TABLE tollgate_payments_customers (
    tenant_id TEXT PRIMARY KEY,
    customer_id TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,
  // One row for each of the processor's events, written by the transaction that handles the event.
  `CREATE TABLE tollgate_payments_events (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    received_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  // A payment is credited only once, even if several events report it. 'refunded' is the total that the processor has reported.
  `CREATE TABLE tollgate_payments_payments (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('checkout', 'auto_reload', 'offline')),
    amount INTEGER NOT NULL CHECK (amount > 0),
    refunded INTEGER NOT NULL CHECK (refunded >= 0),
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_payments_disputes (
    id TEXT PRIMARY KEY,
    payment_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount > 0),
    won INTEGER NOT NULL CHECK (won IN (0, 1)),
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  // 'attempt' is the open attempt. Money is in nano-USD, but 'amount_credits' is whole credits.
  `CREATE TABLE tollgate_autoreload_settings (
    tenant_id TEXT PRIMARY KEY,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    threshold INTEGER NOT NULL,
    amount_credits INTEGER NOT NULL,
    payment_method_id TEXT,
    attempt TEXT,
    in_flight_started_at INTEGER,
    last_attempt_at INTEGER,
    last_charged_at INTEGER,
    last_failed INTEGER NOT NULL CHECK (last_failed IN (0, 1)),
    last_error TEXT,
    failures INTEGER NOT NULL,
    disabled_reason TEXT,
    alerts_enabled INTEGER NOT NULL CHECK (alerts_enabled IN (0, 1)),
    warn_threshold INTEGER,
    rearm_threshold INTEGER,
    warned INTEGER NOT NULL CHECK (warned IN (0, 1)),
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  // Written before the request to the processor, and ended in the transaction that credits the payment or gives up.
  `CREATE TABLE tollgate_autoreload_attempts (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    amount_credits INTEGER NOT NULL,
    payment_method_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('in_flight', 'paid', 'failed')),
    error TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_autoreload_attempts_open ON tollgate_autoreload_attempts (created_at) WHERE status = 'in_flight'`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
