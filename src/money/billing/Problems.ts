import { TenantId } from "../../kernel/Ids.ts"
import { Problem } from "../../kernel/Problem.ts"

export class BillingAccountNotFound extends Problem<BillingAccountNotFound>()("BillingAccountNotFound", {
  status: 404,
  error: "the tenant has no billing account",
  code: "billing_account_not_found",
  fields: { tenant_id: TenantId },
  details: {}
}) {}
