/** Routes for the operator's budgets. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { BudgetChange, BudgetId, BudgetRaise } from "../../money/budgets/Budget.ts"
import { NewOperatorBudget, OperatorBudget, OperatorBudgetList } from "../../money/budgets/OperatorBudget.ts"
import { BudgetNotFound, TooManyBudgets, TooManyRaises } from "../../money/budgets/Problems.ts"
import { ApplicationNotFound, MemberNotFound } from "../../people/tenants/Problems.ts"
import { TenantNotFound } from "../operator/Problems.ts"
import { OperatorToken } from "../operator/Security.ts"

const ofBudget = Schema.Struct({ budget_id: BudgetId })

export class OperatorBudgetsApi extends HttpApiGroup.make("operatorBudgets")
  .add(
    HttpApiEndpoint.get("budgets", "/v1/operator/budgets")
      .addSuccess(Envelope(OperatorBudgetList))
      .annotate(OpenApi.Summary, "List the operator's budgets, oldest first")
  )
  .add(
    HttpApiEndpoint.post("createBudget", "/v1/operator/budgets")
      .setPayload(NewOperatorBudget)
      .addSuccess(Envelope(OperatorBudget), { status: 201 })
      .addError(TenantNotFound)
      .addError(MemberNotFound)
      .addError(ApplicationNotFound)
      .addError(TooManyBudgets)
      .annotate(Example, { body: { name: "all, each day", scope: "everyone", limit: { usd: 5000 }, period: "day" } })
      .annotate(
        OpenApi.Summary,
        "Create a budget for all tenants together or for one tenant, or a template for every tenant on a plan or every new tenant"
      )
  )
  .add(
    HttpApiEndpoint.get("budget", "/v1/operator/budgets/:budget_id")
      .setPath(ofBudget)
      .addSuccess(Envelope(OperatorBudget))
      .addError(BudgetNotFound)
      .annotate(OpenApi.Summary, "Get one of the operator's budgets")
  )
  .add(
    HttpApiEndpoint.patch("changeBudget", "/v1/operator/budgets/:budget_id")
      .setPath(ofBudget)
      .setPayload(BudgetChange)
      .addSuccess(Envelope(OperatorBudget))
      .addError(BudgetNotFound)
      .annotate(Example, { body: { limit: { usd: 6000 } } })
      .annotate(OpenApi.Summary, "Change a budget's name, limit, mode or thresholds, without resetting its counts")
  )
  .add(
    HttpApiEndpoint.del("deleteBudget", "/v1/operator/budgets/:budget_id")
      .setPath(ofBudget)
      .addSuccess(Envelope(OperatorBudget))
      .addError(BudgetNotFound)
      .annotate(OpenApi.Summary, "Delete a budget. Open calls continue")
  )
  .add(
    HttpApiEndpoint.post("raiseBudget", "/v1/operator/budgets/:budget_id/raise")
      .setPath(ofBudget)
      .setPayload(BudgetRaise)
      .addSuccess(Envelope(OperatorBudget))
      .addError(BudgetNotFound)
      .addError(TooManyRaises)
      .annotate(Example, { body: { usd: 500, until: "2099-12-01T00:00:00Z" } })
      .annotate(OpenApi.Summary, "Raise a budget's USD limit for a limited time")
  )
  .addError(InvalidRequest)
  .middleware(OperatorToken) {}
