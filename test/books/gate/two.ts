/** What the two programs on one database speak of. */
import type { Claim } from "../../../src/books/gate/Gate.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"

export const caller: Caller = {
  account_id: "acc_ada" as AccountId,
  tenant_id: "ten_ada" as TenantId,
  application_id: null,
  credential: "user_token",
  team_first: false
}

export const claim: Claim = {
  caller,
  usage_type: "tool",
  endpoint: "work",
  model: "model",
  provider: "provider",
  most: 5n,
  least: 5n
}

export const key = "a-key-of-two-programs"
