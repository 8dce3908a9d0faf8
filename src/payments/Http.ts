import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import type { CallerFacts } from "../http/Caller.ts"
import { envelope } from "../kernel/Envelope.ts"
import { Purchases } from "./Purchases.ts"

export const PaymentsHttp = HttpApiBuilder.group(
  Api,
  "payments",
  Effect.fnUntraced(function* (handlers) {
    const purchases = yield* Purchases
    return handlers
      .handle("checkout", ({ payload }) =>
        mine((caller) =>
          Effect.map(purchases.checkout(caller, payload.amount_credits), (checkout_url) => ({ checkout_url }))
        )
      )
      .handle("setup", () => mine((caller) => Effect.map(purchases.setup(caller), (setup_url) => ({ setup_url }))))
      .handle("methods", () =>
        mine(({ tenant_id }) => Effect.map(purchases.methods(tenant_id), (payment_methods) => ({ payment_methods })))
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

const mine = <A, E>(answer: (caller: CallerFacts) => Effect.Effect<A, E>) =>
  Effect.map(Effect.flatMap(Caller, answer), (result) => envelope(result))
