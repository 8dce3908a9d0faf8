/**
 * Stores the processor's reports of refunds and disputes unchanged, even if the payment is unknown. The books follow from all reports together,
 * regardless of the order in which they arrive. The events themselves are no longer stored.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const changes = [
  // The money taken from a payment, by the processor's id. 'returned' means that the money was returned, and 'total' is the highest reported total of
  // refunds.
  `CREATE TABLE tollgate_payments_movements (
    payment_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('refund', 'total', 'dispute')),
    amount INTEGER NOT NULL CHECK (amount >= 0),
    returned INTEGER NOT NULL CHECK (returned IN (0, 1)),
    heard_at INTEGER NOT NULL,
    PRIMARY KEY (payment_id, id)
  ) STRICT, WITHOUT ROWID`,
  `INSERT INTO tollgate_payments_movements (payment_id, id, kind, amount, returned, heard_at)
    SELECT id, id, 'total', refunded, 0, created_at FROM tollgate_payments_payments WHERE refunded > 0`,
  `INSERT INTO tollgate_payments_movements (payment_id, id, kind, amount, returned, heard_at)
    SELECT payment_id, id, 'dispute', amount, won, created_at FROM tollgate_payments_disputes`,
  // The amount to take back for the payment's refunds and disputes.
  `ALTER TABLE tollgate_payments_payments RENAME COLUMN refunded TO due`,
  `UPDATE tollgate_payments_payments SET due = due + (SELECT COALESCE(SUM(d.amount), 0) FROM tollgate_payments_disputes d
    WHERE d.payment_id = tollgate_payments_payments.id AND d.won = 0)`,
  `DROP TABLE tollgate_payments_disputes`,
  `DROP TABLE tollgate_payments_events`,
  // Finds the amounts taken back for a payment by the payment's reference. Charges are not in this index.
  `CREATE INDEX tollgate_ledger_entries_purchases ON tollgate_ledger_entries (reference_id) WHERE source = 'purchase'`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(changes, (change) => sql.unsafe(change), { discard: true })
)
