/** Budgets of the operator, over HTTP. */
import { Schema } from "effect"
import { TenantId } from "../../kernel/Ids.ts"
import { budgetFields, newBudgetFields } from "./Budget.ts"

/** The tenants whose calls a budget counts: all together, or one. */
export const Scope = Schema.Union(Schema.Literal("everyone"), Schema.Struct({ tenant: TenantId })).annotations({
  identifier: "BudgetScope",
  message: () => ({ message: 'one of "everyone", { "tenant": id }', override: true })
})
export type Scope = typeof Scope.Type

/** Unknown fields are refused. */
export const NewOperatorBudget = Schema.Struct({ ...newBudgetFields, scope: Scope }).annotations({
  identifier: "NewOperatorBudget",
  parseOptions: { onExcessProperty: "error" }
})
export interface NewOperatorBudget extends Schema.Schema.Type<typeof NewOperatorBudget> {}

export const OperatorBudget = Schema.Struct({ ...budgetFields, scope: Scope }).annotations({
  identifier: "OperatorBudget"
})
export interface OperatorBudget extends Schema.Schema.Type<typeof OperatorBudget> {}

export const OperatorBudgetList = Schema.Struct({ budgets: Schema.Array(OperatorBudget) }).annotations({
  identifier: "OperatorBudgetList"
})
