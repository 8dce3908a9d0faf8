/** Removes an account's passkeys when its user is removed. Another user may later own the address and get this account. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { AccountId } from "../../kernel/Ids.ts"

/** The statements that delete all passkeys of an account and its pending registration, for another room's transaction. */
export const removingAll = (sql: SqlClient, account: AccountId): ReadonlyArray<Statement> => [
  statement(sql`DELETE FROM tollgate_passkeys_challenges WHERE account_id = ${account}`),
  statement(sql`DELETE FROM tollgate_passkeys_passkeys WHERE account_id = ${account}`)
]
