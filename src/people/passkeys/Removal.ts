/** Removes an account's passkeys along with its user, because a later owner of the address may receive this account. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { AccountId } from "../../kernel/Ids.ts"

/** Returns the statements that delete all of an account's passkeys and its pending registration, for another module's transaction. */
export const removingAll = (sql: SqlClient, account: AccountId): ReadonlyArray<Statement> => [
  statement(sql`DELETE FROM tollgate_passkeys_challenges WHERE account_id = ${account}`),
  statement(sql`DELETE FROM tollgate_passkeys_passkeys WHERE account_id = ${account}`)
]
