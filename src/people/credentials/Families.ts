/** SQL for sign-ins and their refresh tokens, shared by several modules. A sign-in that has ended has no row. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { AccountId } from "../../kernel/Ids.ts"

/** Builds a condition: the sign-in in `column` has not ended, or the column is NULL. Earlier versions mark ended sign-ins with `revoked_at`. */
export const isLive = (sql: SqlClient, column: string): Fragment =>
  sql.literal(
    `(${column} IS NULL OR EXISTS (SELECT 1 FROM tollgate_auth_families f WHERE f.id = ${column} AND f.revoked_at IS NULL))`
  )

/** Ends the sign-ins selected by `which`: deletes them and their refresh tokens. */
export const ending = (sql: SqlClient, which: Fragment): ReadonlyArray<Statement> => [
  statement(sql`DELETE FROM tollgate_auth_refresh_tokens
    WHERE family_id IN (SELECT id FROM tollgate_auth_families WHERE ${which})`),
  statement(sql`DELETE FROM tollgate_auth_families WHERE ${which}`)
]

/** Ends an account's sign-ins and its pending sign-ins: application codes, device codes and console links. Keeps passkeys and linked identities. */
export const endingAll = (sql: SqlClient, account: AccountId): ReadonlyArray<Statement> => [
  statement(sql`DELETE FROM tollgate_auth_codes WHERE account_id = ${account} AND used_at IS NULL`),
  // The device's next poll reports that access was denied.
  statement(
    sql`UPDATE tollgate_auth_device_codes SET decision = 'deny' WHERE account_id = ${account} AND used_at IS NULL`
  ),
  ...ending(sql, sql`account_id = ${account} AND revoked_at IS NULL`)
]
