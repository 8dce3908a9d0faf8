/** Creates a shared tenant with its billing account and its first owner, in the same transaction as the caller's statements. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { BelongingContract } from "./Belonging.ts"
import * as Members from "./Members.ts"
import type { NewTenantBudgets } from "./NewTenantBudgets.ts"
import type { TenantsContract } from "./Tenants.ts"

export const make = (
  sql: SqlClient,
  writer: WriterContract,
  tenants: TenantsContract,
  belonging: BelongingContract,
  budgetsOf: NewTenantBudgets["Type"]
) => {
  const members = Members.make(sql, writer, tenants, belonging)
  /** Fails with `Conflict` if a statement in `beside` does not find its rows or the owner may not own another tenant. */
  return Effect.fn("Tenants.found")(function* (
    { account_id, name }: { readonly account_id: AccountId; readonly name: string },
    beside: (id: TenantId) => ReadonlyArray<Statement>
  ) {
    yield* members.hasRoom(account_id, true, true)
    const created_at = yield* Clock.currentTimeMillis
    const id = Ids.at("ten", created_at) as TenantId
    const budgets = yield* budgetsOf(id, created_at)
    const made = writer.submit({
      postings: [{ _tag: "Open", account: Ids.billingAccountOf(id), tenant: id }, ...budgets.postings],
      statements: [
        members.stillHasRoom(account_id, true, true),
        statement(
          sql`INSERT INTO tollgate_tenants_tenants (id, name, created_at) VALUES (${id}, ${name.trim()}, ${created_at})`
        ),
        statement(sql`INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
          VALUES (${account_id}, ${id}, 'owner', 'active', ${created_at}, ${created_at})`),
        ...beside(id),
        ...budgets.statements
      ]
    })
    return yield* afterCommit(made, belonging.changed(account_id)).pipe(
      Effect.as({ id, name: name.trim(), created_at }),
      Effect.catchTags({ AccountExists: Effect.die, AccountMissing: Effect.die })
    )
  })
}
