import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import type { CallerFacts } from "../http/Caller.ts"
import { TenantMismatch } from "../http/Problems.ts"
import { envelope } from "../kernel/Envelope.ts"
import type { TenantId } from "../kernel/Ids.ts"
import { Purchases } from "./Purchases.ts"

export const PaymentsHttp = HttpApiBuilder.group(
  Api,
  "payments",
  Effect.fnUntraced(function* (handlers) {
    const purchases = yield* Purchases
    return handlers
      .handle("checkout", ({ path, payload }) =>
        of(path, (caller) =>
          Effect.map(purchases.checkout(caller, payload.amount_credits), (checkout_url) => ({ checkout_url }))
        )
      )
      .handle("setup", ({ path }) =>
        of(path, (caller) => Effect.map(purchases.setup(caller), (setup_url) => ({ setup_url })))
      )
      .handle("methods", ({ path }) =>
        of(path, () => Effect.map(purchases.methods(path.tenant_id), (payment_methods) => ({ payment_methods })))
      )
  })
)

export const WebhooksHttp = HttpApiBuilder.group(
  Api,
  "webhooks",
  Effect.fnUntraced(function* (handlers) {
    const purchases = yield* Purchases
    return handlers.handleRaw("stripe", ({ request }) =>
      Effect.gen(function* () {
        const body = yield* Effect.orDie(request.text)
        yield* purchases.receive(body, request.headers["stripe-signature"] ?? "")
        return { received: true } as const
      })
    )
  })
)

/** The answer for the path's tenant, which must be the token's. */
const of = <A, E>(path: { readonly tenant_id: TenantId }, answer: (caller: CallerFacts) => Effect.Effect<A, E>) =>
  Effect.flatMap(Caller, (caller): Effect.Effect<{ readonly msg: string; readonly result: A }, E | TenantMismatch> =>
    caller.tenant_id === path.tenant_id
      ? Effect.map(answer(caller), (result) => envelope(result))
      : new TenantMismatch()
  )
