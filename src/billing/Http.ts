import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { answer } from "../http/Answer.ts"
import { BillingAccounts } from "./BillingAccounts.ts"

export const BillingHttp = HttpApiBuilder.group(
  Api,
  "billing",
  Effect.fnUntraced(function* (handlers) {
    const accounts = yield* BillingAccounts
    return handlers
      .handle("credits", () => answer(({ tenant_id }) => accounts.credits(tenant_id)))
      .handle("ledger", ({ urlParams }) => answer(({ tenant_id }) => accounts.ledger({ tenant_id, ...urlParams })))
      .handle("account", () => answer(({ tenant_id }) => accounts.find(tenant_id)))
      .handle("change", ({ payload }) => answer((caller) => accounts.change({ caller, change: payload })))
  })
)
