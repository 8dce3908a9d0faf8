import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import type { CallerFacts } from "../http/Caller.ts"
import { TenantMismatch } from "../http/Problems.ts"
import { envelope } from "../kernel/Envelope.ts"
import type { TenantId } from "../kernel/Ids.ts"
import { BillingAccounts } from "./BillingAccounts.ts"

export const BillingHttp = HttpApiBuilder.group(
  Api,
  "billing",
  Effect.fnUntraced(function* (handlers) {
    const accounts = yield* BillingAccounts
    return handlers
      .handle("credits", ({ path }) => answer(path, accounts.credits))
      .handle("ledger", ({ path, urlParams }) => answer(path, (tenant) => accounts.ledger(tenant, urlParams)))
      .handle("account", ({ path }) => answer(path, accounts.find))
      .handle("change", ({ path, payload }) =>
        answer(path, (tenant, { account_id }) => accounts.change(account_id, tenant, payload))
      )
  })
)

/** What is found for the path's tenant, which must be the token's. */
const answer = Effect.fnUntraced(function* <A, E>(
  { tenant_id }: { readonly tenant_id: TenantId },
  find: (tenant: TenantId, caller: CallerFacts) => Effect.Effect<A, E>
) {
  const caller = yield* Caller
  if (caller.tenant_id !== tenant_id) return yield* new TenantMismatch()
  return envelope(yield* find(tenant_id, caller))
})
