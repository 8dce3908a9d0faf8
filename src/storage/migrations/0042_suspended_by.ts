/**
 * Records who suspended a user: the operator, the directory (SCIM), or both. For earlier suspensions, the audit log shows whether the directory
 * requested the last one.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `ALTER TABLE tollgate_tenants_suspensions ADD COLUMN by_operator INTEGER NOT NULL DEFAULT 1 CHECK (by_operator IN (0, 1))`,
  `ALTER TABLE tollgate_tenants_suspensions ADD COLUMN by_directory INTEGER NOT NULL DEFAULT 0 CHECK (by_directory IN (0, 1))`,
  `UPDATE tollgate_tenants_suspensions SET by_operator = 0, by_directory = 1 WHERE (
    SELECT a.operator || ' ' || a.via FROM tollgate_operator_audit a
    WHERE a.account_id = tollgate_tenants_suspensions.account_id AND a.action = 'person.suspend' ORDER BY a.id DESC LIMIT 1
  ) = 'scim token'`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
