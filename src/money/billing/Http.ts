import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { BillingApi } from "./Api.ts"
import { BillingAccounts } from "./BillingAccounts.ts"
import { ledgerOf } from "./Query.ts"

export const BillingHttp = HttpApiBuilder.group(
  contract.add(BillingApi),
  "billing",
  Effect.fnUntraced(function* (handlers) {
    const accounts = yield* BillingAccounts
    return handlers
      .handle("credits", () => answer(({ tenant_id }) => accounts.credits(tenant_id)))
      .handle("amounts", () => answer(({ tenant_id }) => accounts.amounts(tenant_id)))
      .handle("ledger", ({ urlParams }) =>
        answer(({ tenant_id }) =>
          Effect.flatMap(ledgerOf(urlParams), (asked) => accounts.ledger({ tenant_id, ...asked }))
        )
      )
      .handle("account", () => answer(({ tenant_id }) => accounts.find(tenant_id)))
      .handle("change", ({ payload }) => answer((caller) => accounts.change({ caller, change: payload })))
  })
)
