import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { BudgetsApi } from "./Api.ts"
import { Budgets } from "./Budgets.ts"

export const BudgetsHttp = HttpApiBuilder.group(
  contract.add(BudgetsApi),
  "budgets",
  Effect.fnUntraced(function* (handlers) {
    const budgets = yield* Budgets
    return handlers
      .handle("budgets", () =>
        answer((caller) => Effect.map(budgets.list({ caller }), (found) => ({ budgets: found })))
      )
      .handle("createBudget", ({ payload }) => answer((caller) => budgets.create({ caller, budget: payload })))
      .handle("budget", ({ path: { budget_id } }) => answer((caller) => budgets.find({ caller, budget_id })))
      .handle("changeBudget", ({ path: { budget_id }, payload }) =>
        answer((caller) => budgets.change({ caller, budget_id, change: payload }))
      )
      .handle("deleteBudget", ({ path: { budget_id } }) => answer((caller) => budgets.remove({ caller, budget_id })))
      .handle("raiseBudget", ({ path: { budget_id }, payload }) =>
        answer((caller) => budgets.raise({ caller, budget_id, raise: payload }))
      )
  })
)
