/** Credit transfers. The row also stores the Idempotency-Key, so that the key and the debit are committed together. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  `CREATE TABLE tollgate_transfers (
    id TEXT PRIMARY KEY,
    billing_account_id TEXT NOT NULL,
    sender_account_id TEXT NOT NULL,
    recipient_email TEXT NOT NULL,
    recipient_account_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('gift', 'transfer')),
    amount INTEGER NOT NULL CHECK (amount > 0),
    reason TEXT,
    message TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'accepted', 'declined', 'revoked', 'expired')),
    -- The token itself is only in the letter.
    token_hash TEXT NOT NULL UNIQUE,
    idempotency_key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    letters INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_sent_at INTEGER NOT NULL,
    resent_at INTEGER,
    ended_at INTEGER,
    UNIQUE (billing_account_id, idempotency_key)
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_transfers_sent ON tollgate_transfers (billing_account_id, id)`,
  `CREATE INDEX tollgate_transfers_received ON tollgate_transfers (recipient_email, id)`,
  `CREATE INDEX tollgate_transfers_pending ON tollgate_transfers (expires_at) WHERE status = 'pending'`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
