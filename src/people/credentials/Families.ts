/** SQL about sign-ins for statements of other rooms. Only this room names their table. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"

/** True if the sign-in in `column` has not ended, or if the column is NULL. */
export const isLive = (sql: SqlClient, column: string): Fragment =>
  sql.literal(
    `(${column} IS NULL OR EXISTS (SELECT 1 FROM tollgate_auth_families f WHERE f.id = ${column} AND f.revoked_at IS NULL))`
  )
