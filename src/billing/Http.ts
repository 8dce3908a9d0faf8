import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import type { CallerFacts } from "../http/Caller.ts"
import { envelope } from "../kernel/Envelope.ts"
import type { TenantId } from "../kernel/Ids.ts"
import { BillingAccounts } from "./BillingAccounts.ts"

export const BillingHttp = HttpApiBuilder.group(
  Api,
  "billing",
  Effect.fnUntraced(function* (handlers) {
    const accounts = yield* BillingAccounts
    return handlers
      .handle("credits", () => answer(accounts.credits))
      .handle("ledger", ({ urlParams }) => answer((tenant) => accounts.ledger(tenant, urlParams)))
      .handle("account", () => answer(accounts.find))
      .handle("change", ({ payload }) =>
        answer((tenant, { account_id }) => accounts.change(account_id, tenant, payload))
      )
  })
)

/** What is found for the token's tenant. */
const answer = <A, E>(find: (tenant: TenantId, caller: CallerFacts) => Effect.Effect<A, E>) =>
  Effect.flatMap(Caller, (caller) => Effect.map(find(caller.tenant_id, caller), (found) => envelope(found)))
