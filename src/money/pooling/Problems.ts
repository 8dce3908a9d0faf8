import { BillingAccountId } from "../../kernel/Ids.ts"
import { Problem } from "../../kernel/Problem.ts"

export class InvalidBillingSource extends Problem<InvalidBillingSource>()("InvalidBillingSource", {
  status: 400,
  error: "this billing source cannot pay for your calls now",
  code: "invalid_billing_source",
  fields: { billing_account_id: BillingAccountId },
  details: { field: "billing_account_id", rule: "must be a source that can pay now" }
}) {}
