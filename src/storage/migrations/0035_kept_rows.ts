/**
 * Limits the number of an account's rows, adds indexes that find the oldest ones, and removes rows that no request reads. Codes get an `auth_time`.
 * From now on, sign-ins are deleted when they end.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // The time at which the user signed in, for the ID token.
  `ALTER TABLE tollgate_auth_codes ADD COLUMN auth_time INTEGER`,
  `DELETE FROM tollgate_auth_refresh_tokens
    WHERE family_id IN (SELECT id FROM tollgate_auth_families WHERE revoked_at IS NOT NULL)`,
  `DELETE FROM tollgate_auth_families WHERE revoked_at IS NOT NULL`,
  `CREATE INDEX tollgate_tenants_applications_member ON tollgate_tenants_applications (tenant_id, account_id)`,
  `CREATE INDEX tollgate_tenants_applications_family ON tollgate_tenants_applications (family_id) WHERE family_id IS NOT NULL`,
  `CREATE INDEX tollgate_auth_codes_account ON tollgate_auth_codes (account_id, expires_at)`,
  `CREATE INDEX tollgate_mail_outbox_recipient ON tollgate_mail_outbox (recipient) WHERE status IN ('waiting', 'sending')`,
  `CREATE INDEX tollgate_mail_outbox_ended ON tollgate_mail_outbox (created_at) WHERE status IN ('sent', 'failed', 'unknown')`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
