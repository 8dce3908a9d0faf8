/** The first budgets of a new tenant. The transaction that creates the tenant also creates them. */
import { Context, Effect } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Posting, Statement } from "../../books/ledger/rules/Transaction.ts"

export interface FirstBudgets {
  readonly postings: ReadonlyArray<Extract<Posting, { readonly _tag: "SetBudget" }>>
  readonly statements: ReadonlyArray<Statement>
}

const none: FirstBudgets = { postings: [], statements: [] }

export class NewTenantBudgets extends Context.Reference<NewTenantBudgets>()("tollgate/tenants/NewTenantBudgets", {
  defaultValue: () => (_tenant: TenantId, _now: number) => Effect.succeed(none)
}) {}
