/** Changes the names of accounts and tenants. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { TenantsContract } from "./Tenants.ts"

export const make = (
  sql: SqlClient,
  writer: WriterContract
): Pick<TenantsContract, "renameAccount" | "renameTenant"> => ({
  renameAccount: Effect.fn("Tenants.renameAccount")(function* (account, name, beside) {
    const now = yield* Clock.currentTimeMillis
    const renamed = sql`UPDATE tollgate_tenants_accounts SET name = ${name}, updated_at = ${now}
      WHERE id = ${account} RETURNING id`
    return yield* Statements.tryWrite(writer, statement(renamed, 1), ...beside)
  }),
  renameTenant: Effect.fn("Tenants.renameTenant")(function* (tenant, name, beside) {
    const renamed = sql`UPDATE tollgate_tenants_tenants SET name = ${name} WHERE id = ${tenant} RETURNING id`
    return yield* Statements.tryWrite(writer, statement(renamed, 1), ...beside)
  })
})
