/** Reads and writes budgets. The books contain their terms and counters; this directory's table contains the other columns. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import { budgetsOf } from "../../books/ledger/Budgets.ts"
import type * as Books from "../../books/ledger/rules/Budget.ts"
import type { BudgetTerms } from "../../books/ledger/rules/Budget.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { Posting, Statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { Actor } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { ApplicationsContract } from "../../people/tenants/Applications.ts"
import { MemberNotFound } from "../../people/tenants/Problems.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import { keyOf, shown } from "./Budget.ts"
import type { BudgetId, NewBudget } from "./Budget.ts"
import { checkNames } from "./KnownCalls.ts"
import type { KnownCalls } from "./KnownCalls.ts"
import type { Notices } from "./Notices.ts"
import { BudgetNotFound } from "./Problems.ts"
import type { PlansByName } from "../allowances/Settings.ts"
import type { TenantPlansContract } from "../allowances/TenantPlans.ts"
import type { Row, Storage } from "./Storage.ts"
import type { Templates } from "./Templates.ts"

export interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly storage: Storage
  readonly tenants: TenantsContract
  readonly applications: ApplicationsContract
  readonly known: KnownCalls["Type"]
  readonly notices: Notices
  readonly templates: Templates
  readonly plans: PlansByName
  readonly tenantsOf: TenantPlansContract["tenantsOf"]
  /** Starts the loop's next iteration early. */
  readonly wake: Effect.Effect<void>
}

/** Converts budgets to their public form, with their raises. */
export const allShown = ({ storage }: Pick<Parts, "storage">, found: ReadonlyArray<Books.Budget>, now: number) =>
  Effect.map(
    storage.raises(
      found.map(({ id }) => id),
      now
    ),
    (raises) => found.map((budget) => shown(budget, raises.get(budget.id) ?? [], now))
  )

export interface Read {
  readonly row: Row
  readonly budget: Books.Budget
}

/** Reads a budget with its row. The row is read first, so a later change to the budget conflicts. */
export const read = Effect.fnUntraced(function* (
  { sql, storage }: Pick<Parts, "sql" | "storage">,
  budget_id: BudgetId
) {
  const row = yield* storage.find(budget_id)
  const [budget] = yield* budgetsOf(sql, [budget_id], yield* Clock.currentTimeMillis)
  return row === undefined || budget === undefined
    ? yield* new BudgetNotFound({ budget_id })
    : ({ row, budget } as Read)
})

/** Rejects conditions that none of the tenant's calls can meet. `caller` must have access to the key. */
export const checkConditions = Effect.fnUntraced(function* (
  { applications, known, tenants }: Parts,
  caller: Actor | { readonly account_id: null; readonly tenant_id: TenantId },
  { applies_to }: Pick<NewBudget, "applies_to">
) {
  const { tenant_id } = caller
  const { key, member } = applies_to
  yield* checkNames(known, applies_to)
  if (key !== undefined) yield* applications.find({ caller, application_id: key })
  if (member === undefined) return
  const members = yield* tenants.members(tenant_id)
  if (!members.some(({ account_id }) => account_id === member))
    return yield* new MemberNotFound({ tenant_id, account_id: member })
})

/** Builds the posting that creates or changes a tenant's budget. Null `terms` delete the budget. */
export const setBudget = (
  id: string,
  tenant: string,
  key: string | undefined,
  terms: BudgetTerms | null
): Extract<Posting, { readonly _tag: "SetBudget" }> => ({
  _tag: "SetBudget",
  id,
  kind: "budget",
  anchor: key ?? tenant,
  tenant,
  account: billingAccountOf(tenant),
  terms
})

/** Writes the terms together with `statements`. Null `terms` delete the budget. Returns `false` if the budget has changed since it was read. */
export const write = (
  { writer }: Pick<Parts, "writer">,
  { budget, row }: Read,
  terms: BudgetTerms | null,
  statements: ReadonlyArray<Statement>
): Effect.Effect<boolean, BooksUnavailable> => {
  const { anchor, id, kind } = budget
  const posting =
    row.tenant_id === null
      ? ({ _tag: "SetBudget", id, kind, anchor, terms } as const)
      : setBudget(id, row.tenant_id, keyOf(budget), terms)
  return writer
    .submit({ postings: [posting], statements })
    .pipe(Effect.as(true), Effect.catchTags({ AccountMissing: Effect.die, Conflict: () => Effect.succeed(false) }))
}
