/**
 * Who made what: the application behind a key, the credential behind a generation job, and who was given the ids of responses that a vendor
 * keeps. Jobs that are there already name no tenant and no holder: every credential of their account reaches them, as before.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // The OAuth client that made a key, and the sign-in that it ends with.
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN client_id TEXT`,
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN client_name TEXT`,
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN family_id TEXT`,
  // The limits that an owner or admin has set on another's key, as JSON.
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN bounds TEXT`,
  `ALTER TABLE tollgate_media_jobs ADD COLUMN tenant_id TEXT`,
  `ALTER TABLE tollgate_media_jobs ADD COLUMN holder TEXT`,
  // Ids as their hashes. They count up for each account, so that the oldest are found without a look at the others.
  `CREATE TABLE tollgate_chat_kept (
    tenant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, account_id, id)
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_chat_kept_number ON tollgate_chat_kept (tenant_id, account_id, number)`,
  `CREATE INDEX tollgate_chat_kept_age ON tollgate_chat_kept (at)`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
