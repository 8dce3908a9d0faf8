/**
 * Records ownership: the application that created a key, the credential of a generation job, and the recipients of the ids of responses that vendors
 * store. Existing jobs have no tenant and no holder, so every credential of their account can still access them.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // The OAuth client that created the key, and its sign-in. The key expires with that sign-in.
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN client_id TEXT`,
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN client_name TEXT`,
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN family_id TEXT`,
  // The limits that an owner or admin has set on another member's key, as JSON.
  `ALTER TABLE tollgate_tenants_applications ADD COLUMN bounds TEXT`,
  `ALTER TABLE tollgate_media_jobs ADD COLUMN tenant_id TEXT`,
  `ALTER TABLE tollgate_media_jobs ADD COLUMN holder TEXT`,
  // Ids are stored as hashes. Rows are numbered per account, so that the oldest can be found without reading the others.
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
