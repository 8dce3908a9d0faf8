/** Routes for a tenant's budgets. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { TenantKeysToken } from "../../people/credentials/Security.ts"
import { ApplicationNotFound, InsufficientRole, MemberNotFound } from "../../people/tenants/Problems.ts"
import { Budget, BudgetChange, BudgetId, BudgetList, BudgetRaise, NewBudget } from "./Budget.ts"
import { BudgetNotFound, BudgetOfOperator, TooManyBudgets, TooManyRaises } from "./Problems.ts"

const ofTenant = Schema.Struct({ tenant_id: TenantId })
const ofBudget = Schema.Struct({ tenant_id: TenantId, budget_id: BudgetId })

export class BudgetsApi extends HttpApiGroup.make("budgets")
  .add(
    HttpApiEndpoint.get("budgets", "/v1/tenants/:tenant_id/budgets")
      .setPath(ofTenant)
      .addSuccess(Envelope(BudgetList))
      .addError(InsufficientRole)
      .annotate(
        OpenApi.Summary,
        "List the tenant's budgets, oldest first; a member sees only those that can count their calls"
      )
  )
  .add(
    HttpApiEndpoint.post("createBudget", "/v1/tenants/:tenant_id/budgets")
      .setPath(ofTenant)
      .setPayload(NewBudget)
      .addSuccess(Envelope(Budget).annotations(HttpApiSchema.annotations({ status: 201, identifier: "BudgetCreated" })))
      .addError(InvalidRequest)
      .addError(InsufficientRole)
      .addError(MemberNotFound)
      .addError(ApplicationNotFound)
      .addError(TooManyBudgets)
      .annotate(Example, { body: { name: "the team, each day", limit: { usd: 50, requests: 10_000 }, period: "day" } })
      .annotate(OpenApi.Summary, "Create a budget (owner or admin; members only on their own API keys)")
  )
  .add(
    HttpApiEndpoint.get("budget", "/v1/tenants/:tenant_id/budgets/:budget_id")
      .setPath(ofBudget)
      .addSuccess(Envelope(Budget))
      .addError(BudgetNotFound)
      .addError(InsufficientRole)
      .annotate(OpenApi.Summary, "Get a budget: its limit, its spent and reserved amounts, and its next reset")
  )
  .add(
    HttpApiEndpoint.patch("changeBudget", "/v1/tenants/:tenant_id/budgets/:budget_id")
      .setPath(ofBudget)
      .setPayload(BudgetChange)
      .addSuccess(Envelope(Budget))
      .addError(BudgetNotFound)
      .addError(BudgetOfOperator)
      .addError(InsufficientRole)
      .addError(InvalidRequest)
      .annotate(Example, { body: { limit: { usd: 75 } } })
      .annotate(OpenApi.Summary, "Change a budget's name, limit, mode or thresholds; its counts remain")
  )
  .add(
    HttpApiEndpoint.del("deleteBudget", "/v1/tenants/:tenant_id/budgets/:budget_id")
      .setPath(ofBudget)
      .addSuccess(Envelope(Budget))
      .addError(BudgetNotFound)
      .addError(BudgetOfOperator)
      .addError(InsufficientRole)
      .annotate(OpenApi.Summary, "Delete a budget; open calls continue")
  )
  .add(
    HttpApiEndpoint.post("raiseBudget", "/v1/tenants/:tenant_id/budgets/:budget_id/raise")
      .setPath(ofBudget)
      .setPayload(BudgetRaise)
      .addSuccess(Envelope(Budget))
      .addError(BudgetNotFound)
      .addError(BudgetOfOperator)
      .addError(InsufficientRole)
      .addError(InvalidRequest)
      .addError(TooManyRaises)
      .annotate(Example, { body: { usd: 20, until: "2099-12-01T00:00:00Z" } })
      .annotate(OpenApi.Summary, "Raise a budget's USD limit for a limited time")
  )
  .middleware(TenantKeysToken) {}
