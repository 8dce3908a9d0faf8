/**
 * The scopes of applications, and the account that caused an email. The migration does not extend any permissions from an earlier version. OAuth
 * clients from that version are not trusted, and their sign-ins get the scope that the consent page showed. Codes that have not been exchanged yet
 * expire, because they do not record the scope that the user approved.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const changes = [
  `ALTER TABLE tollgate_auth_clients ADD COLUMN trusted INTEGER NOT NULL DEFAULT 0 CHECK (trusted IN (0, 1))`,
  // `all`, or a list of scopes.
  `ALTER TABLE tollgate_auth_families ADD COLUMN scope TEXT NOT NULL DEFAULT 'all'`,
  `UPDATE tollgate_auth_families SET scope = 'profile email calls' WHERE team_first = 1`,
  `ALTER TABLE tollgate_auth_codes ADD COLUMN nonce TEXT`,
  `UPDATE tollgate_auth_codes SET expires_at = 0 WHERE used_at IS NULL`,
  // The account that caused the email; null for emails from the service itself.
  `ALTER TABLE tollgate_mail_outbox ADD COLUMN caused_by TEXT`,
  `CREATE INDEX tollgate_mail_outbox_cause ON tollgate_mail_outbox (caused_by, created_at) WHERE caused_by IS NOT NULL`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(changes, (change) => sql.unsafe(change), { discard: true })
)
