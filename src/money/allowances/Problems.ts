import { Schema } from "effect"
import { TenantId } from "../../kernel/Ids.ts"
import { Problem } from "../../kernel/Problem.ts"

export class AllowanceNotFound extends Problem<AllowanceNotFound>()("AllowanceNotFound", {
  status: 404,
  error: "the tenant has no allowance",
  code: "allowance_not_found",
  fields: { tenant_id: TenantId },
  details: {}
}) {}

export class AllowancePlanUnknown extends Problem<AllowancePlanUnknown>()("AllowancePlanUnknown", {
  status: 422,
  error: "no configured plan with this name has an allowance",
  code: "plan_unknown",
  fields: { plan: Schema.String }
}) {}
