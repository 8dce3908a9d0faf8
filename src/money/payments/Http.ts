import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer, storable } from "../../http/lanes/Answer.ts"
import { PaymentsApi, WebhooksApi } from "./Api.ts"
import { Purchases } from "./Purchases.ts"

export const PaymentsHttp = HttpApiBuilder.group(
  contract.add(PaymentsApi),
  "payments",
  Effect.fnUntraced(function* (handlers) {
    const purchases = yield* Purchases
    return handlers
      .handle("checkout", ({ payload }) =>
        answer((caller) =>
          Effect.map(purchases.checkout({ caller, amount: payload.amount_credits }), (checkout_url) => ({
            checkout_url
          }))
        )
      )
      .handle("setup", () =>
        answer((caller) => Effect.map(purchases.setup({ caller }), (setup_url) => ({ setup_url })))
      )
      .handle("payments", ({ urlParams }) => answer(({ tenant_id }) => purchases.page(tenant_id, urlParams)))
      .handle("methods", () =>
        answer((caller) => Effect.map(purchases.methods({ caller }), (payment_methods) => ({ payment_methods })))
      )
  })
)

export const WebhooksHttp = HttpApiBuilder.group(
  contract.add(WebhooksApi),
  "webhooks",
  Effect.fnUntraced(function* (handlers) {
    const purchases = yield* Purchases
    return handlers.handleRaw("stripe", ({ request }) =>
      Effect.gen(function* () {
        const text = yield* Effect.orDie(request.text)
        yield* storable(purchases.receive({ text, signature: request.headers["stripe-signature"] ?? "" }))
        return { received: true } as const
      })
    )
  })
)
