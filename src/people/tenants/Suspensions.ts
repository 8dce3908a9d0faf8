/**
 * Suspensions of people by the operator. A suspended person's tokens and keys are refused until the person is activated again. Credit and
 * memberships stay.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import type { AccountId } from "../../kernel/Ids.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { BelongingContract } from "./Belonging.ts"
import type { TenantsContract } from "./Tenants.ts"

export const make = (sql: SqlClient, writer: WriterContract, belonging: BelongingContract) => {
  const suspend: TenantsContract["suspend"] = Effect.fn("Tenants.suspend")(function* (account, beside) {
    const now = yield* Clock.currentTimeMillis
    const added = sql`INSERT INTO tollgate_tenants_suspensions (account_id, suspended_at)
      SELECT id, ${now} FROM tollgate_tenants_accounts WHERE id = ${account} ON CONFLICT DO NOTHING RETURNING account_id`
    return yield* afterCommit(Statements.tryWrite(writer, statement(added, 1), ...beside), belonging.changed(account))
  })

  const activate: TenantsContract["activate"] = Effect.fn("Tenants.activate")(function* (account, beside) {
    const removed = sql`DELETE FROM tollgate_tenants_suspensions WHERE account_id = ${account} RETURNING account_id`
    return yield* afterCommit(Statements.tryWrite(writer, statement(removed, 1), ...beside), belonging.changed(account))
  })

  const isSuspended = (account: AccountId) =>
    Effect.map(
      Effect.orDie(sql`SELECT 1 FROM tollgate_tenants_suspensions WHERE account_id = ${account}`),
      (rows) => rows.length > 0
    )

  return { suspend, activate, isSuspended }
}
