/** Schemas for the operator's budgets. */
import { Schema } from "effect"
import { TenantId } from "../../kernel/Ids.ts"
import { budgetFields, newBudgetFields } from "./Budget.ts"

/**
 * The tenants that a budget covers. `everyone` is one budget for all tenants together. `each_new_tenant` and a plan create a template. A template
 * gives each of its tenants a separate budget.
 */
export const Scope = Schema.Union(
  Schema.Literal("everyone", "each_new_tenant"),
  Schema.Struct({ tenant: TenantId }),
  Schema.Struct({ plan: Schema.String })
).annotations({
  identifier: "BudgetScope",
  message: () => ({
    message: 'must be one of "everyone", "each_new_tenant", { "tenant": id }, { "plan": name }',
    override: true
  })
})
export type Scope = typeof Scope.Type

/** Rejects unknown fields. */
export const NewOperatorBudget = Schema.Struct({ ...newBudgetFields, scope: Scope }).annotations({
  identifier: "NewOperatorBudget",
  parseOptions: { onExcessProperty: "error" }
})
export interface NewOperatorBudget extends Schema.Schema.Type<typeof NewOperatorBudget> {}

export const OperatorBudget = Schema.Struct({
  ...budgetFields,
  scope: Scope,
  /** The template's budget count. The template's counters are the sums of its budgets'. Absent for any other budget. */
  tenants: Schema.optional(Schema.Int)
}).annotations({ identifier: "OperatorBudget" })
export interface OperatorBudget extends Schema.Schema.Type<typeof OperatorBudget> {}

export const OperatorBudgetList = Schema.Struct({ budgets: Schema.Array(OperatorBudget) }).annotations({
  identifier: "OperatorBudgetList"
})
