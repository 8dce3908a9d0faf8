import { HttpApiBuilder } from "@effect/platform"
import { Clock, Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { storable } from "../../http/lanes/Answer.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { toIso } from "../../kernel/Moment.ts"
import { Budgets } from "../../money/budgets/Budgets.ts"
import type { BudgetChange } from "../../money/budgets/Budget.ts"
import type { Beside } from "../../money/budgets/OfOperator.ts"
import * as Audit from "../operator/Audit.ts"
import { CurrentOperator } from "../operator/CurrentOperator.ts"
import { TenantNotFound } from "../operator/Problems.ts"
import { OperatorBudgetsApi } from "./Api.ts"

const answered = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.map(storable(effect), (result) => envelope(result))

/** Creates the statement that adds the current operator's action on a budget to the audit log. The statement commits with that action. */
const audited = (action: string, details: NonNullable<Audit.Act["details"]>) =>
  Effect.zipWith(CurrentOperator, Clock.currentTimeMillis, (operator, now): Beside => ({ id, tenant_id }) => [
    Audit.entry(operator, { action, subject: id, tenant_id, details }, now)
  ])

/** Describes a limit for an audit log entry. A removed limit becomes `none`. */
const limitIn = (limit: BudgetChange["limit"] = {}): NonNullable<Audit.Act["details"]> =>
  Object.fromEntries(
    Object.entries(limit).flatMap(([unit, value]) =>
      value === undefined ? [] : [[unit === "usd" ? "limit_usd" : `limit_${unit}`, value ?? "none"]]
    )
  )

export const OperatorBudgetsHttp = HttpApiBuilder.group(
  contract.add(OperatorBudgetsApi),
  "operatorBudgets",
  Effect.fnUntraced(function* (handlers) {
    const { ofOperator } = yield* Budgets
    return handlers
      .handle("budgets", () => answered(Effect.map(ofOperator.list, (budgets) => ({ budgets }))))
      .handle("budget", ({ path }) => answered(ofOperator.find(path.budget_id)))
      .handle("createBudget", ({ payload }) => {
        const { limit, name, period } = payload
        return answered(
          audited("budget.create", { name, period, ...limitIn(limit) }).pipe(
            Effect.flatMap((beside) => ofOperator.create(payload, beside)),
            Effect.catchTag("BillingAccountNotFound", ({ tenant_id }) => new TenantNotFound({ tenant_id }))
          )
        )
      })
      .handle("changeBudget", ({ path, payload }) => {
        const { limit, mode, name } = payload
        return answered(
          Effect.flatMap(audited("budget.change", { name, mode, ...limitIn(limit) }), (beside) =>
            ofOperator.change(path.budget_id, payload, beside)
          )
        )
      })
      .handle("raiseBudget", ({ path, payload }) => {
        const { until, usd } = payload
        return answered(
          Effect.flatMap(audited("budget.raise", { amount_usd: usd, until: toIso(until) }), (beside) =>
            ofOperator.raise(path.budget_id, payload, beside)
          )
        )
      })
      .handle("deleteBudget", ({ path }) =>
        answered(Effect.flatMap(audited("budget.delete", {}), (beside) => ofOperator.remove(path.budget_id, beside)))
      )
  })
)
