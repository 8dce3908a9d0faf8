/** Outgoing emails, and notices. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  // `sealed` is the encrypted email, which may contain an invitation's token. It is emptied once the email is sent.
  `CREATE TABLE tollgate_mail_outbox (
    key TEXT PRIMARY KEY,
    recipient TEXT NOT NULL,
    sealed TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'sending', 'sent', 'failed', 'unknown')),
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    last_error TEXT
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_mail_outbox_open ON tollgate_mail_outbox (status, due_at) WHERE status IN ('waiting', 'sending')`,
  `CREATE TABLE tollgate_notifications_notices (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    data TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    read_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_notifications_notices_account ON tollgate_notifications_notices (account_id, id)`,
  `CREATE INDEX tollgate_notifications_notices_unread ON tollgate_notifications_notices (account_id) WHERE read_at IS NULL`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
