/** Removes an account's passkeys when its person is removed. Another person may later own the address and get this account. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { AccountId } from "../../kernel/Ids.ts"

/** The statement that deletes all passkeys of an account, for another room's transaction. */
export const removingAll = (sql: SqlClient, account: AccountId): Statement =>
  statement(sql`DELETE FROM tollgate_passkeys_passkeys WHERE account_id = ${account}`)
