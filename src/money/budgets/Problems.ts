/** Refusals of budgets. */
import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class BudgetNotFound extends Problem<BudgetNotFound>()("BudgetNotFound", {
  status: 404,
  error: "there is no such budget",
  code: "budget_not_found",
  fields: { budget_id: Schema.String },
  details: {}
}) {}

/** Only the operator can change the budget. */
export class BudgetOfOperator extends Problem<BudgetOfOperator>()("BudgetOfOperator", {
  status: 403,
  error: "the operator of the service has set this budget: only they may change or delete it",
  code: "budget_of_operator",
  fields: { budget_id: Schema.String },
  details: {}
}) {}

export class TooManyBudgets extends Problem<TooManyBudgets>()("TooManyBudgets", {
  status: 409,
  error: "there are too many budgets: delete one that is not used",
  code: "too_many_budgets",
  fields: { limit: Schema.Int }
}) {}

export class TooManyRaises extends Problem<TooManyRaises>()("TooManyRaises", {
  status: 409,
  error: "this budget has too many raises that have not ended: change its limit, or wait until one ends",
  code: "too_many_raises",
  fields: { limit: Schema.Int }
}) {}
