import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class BudgetNotFound extends Problem<BudgetNotFound>()("BudgetNotFound", {
  status: 404,
  error: "there is no such budget",
  code: "budget_not_found",
  fields: { budget_id: Schema.String },
  details: {}
}) {}

export class BudgetOfOperator extends Problem<BudgetOfOperator>()("BudgetOfOperator", {
  status: 403,
  error: "the service's operator set this budget; only the operator may change or delete it",
  code: "budget_of_operator",
  fields: { budget_id: Schema.String },
  details: {}
}) {}

export class TooManyBudgets extends Problem<TooManyBudgets>()("TooManyBudgets", {
  status: 409,
  error: "too many budgets; delete an unused one",
  code: "too_many_budgets",
  fields: { limit: Schema.Int }
}) {}

export class TooManyRaises extends Problem<TooManyRaises>()("TooManyRaises", {
  status: 409,
  error: "this budget has too many open raises; change its limit or wait until a raise expires",
  code: "too_many_raises",
  fields: { limit: Schema.Int }
}) {}
