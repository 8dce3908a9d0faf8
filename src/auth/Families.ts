/** Sign-ins as statements of other rooms may ask them, in SQL: their table is named in this room alone. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"

/** That the sign-in which a column names has not been ended. A row that names none is let through. */
export const isLive = (sql: SqlClient, column: string): Fragment =>
  sql.literal(
    `(${column} IS NULL OR EXISTS (SELECT 1 FROM tollgate_auth_families f WHERE f.id = ${column} AND f.revoked_at IS NULL))`
  )
