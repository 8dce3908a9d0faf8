/** Queries budgets. The postings `SetBudget` and `SetLimit` change them. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { budgetOf, selection } from "./rows/Budgets.ts"
import type { BudgetRow } from "./rows/Budgets.ts"
import { budgetAt } from "./rules/Budget.ts"
import type { Budget } from "./rules/Budget.ts"
import type { Limit, LimitPeriod } from "./rules/Transaction.ts"

const rowsOf = (sql: SqlClient, where: string, params: ReadonlyArray<unknown>, now: number) =>
  Effect.map(
    Effect.orDie(
      sql.unsafe<BudgetRow>(`SELECT ${selection} FROM tollgate_ledger_budgets WHERE ${where} ORDER BY id`, params)
    ),
    (rows) => rows.map((row) => budgetAt(budgetOf(row), now))
  )

/** Reads budgets by id, in their state at `now`. Unknown ids are omitted. */
export const budgetsOf = (
  sql: SqlClient,
  ids: ReadonlyArray<string>,
  now: number
): Effect.Effect<ReadonlyArray<Budget>> =>
  ids.length === 0
    ? Effect.succeed([])
    : rowsOf(sql, "id IN (SELECT value FROM json_each(?))", [JSON.stringify(ids)], now)

/** Reads a tenant's budgets of the kind `budget`, in their state at `now`. `null` selects the operator's budgets, which count all tenants. */
export const budgetsOfTenant = (
  sql: SqlClient,
  tenant: string | null,
  now: number
): Effect.Effect<ReadonlyArray<Budget>> =>
  tenant === null
    ? rowsOf(sql, "kind = 'budget' AND tenant_id IS NULL", [], now)
    : rowsOf(sql, "kind = 'budget' AND tenant_id = ?", [tenant], now)

/** Reads the budgets that have reached a notification threshold, in their state as of the last booking. */
export const crossedBudgets = (sql: SqlClient): Effect.Effect<ReadonlyArray<Budget>> =>
  Effect.map(
    Effect.orDie(
      sql.unsafe<BudgetRow>(`SELECT ${selection} FROM tollgate_ledger_budgets WHERE crossed > 0 ORDER BY id`)
    ),
    (rows) => rows.map(budgetOf)
  )

/** Reads the spending limits of these applications, in their state at `now`. Applications without a limit are omitted. */
export const limitsOf = (
  sql: SqlClient,
  applications: ReadonlyArray<string>,
  now: number
): Effect.Effect<ReadonlyMap<string, Limit>> =>
  Effect.map(
    budgetsOf(sql, applications, now),
    (budgets) => new Map(budgets.filter(({ kind }) => kind === "key").map((budget) => [budget.id, limitOf(budget)]))
  )

const limitOf = (budget: Budget): Limit => ({
  application_id: budget.id,
  tenant_id: budget.tenant_id!,
  amount: budget.terms.limit.usd!,
  period: budget.terms.period as LimitPeriod,
  start: budget.start,
  spent: budget.spent,
  reserved: budget.reserved,
  ceiling: budget.ceiling!
})
