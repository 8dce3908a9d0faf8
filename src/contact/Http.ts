import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { RateLimits } from "../http/RateLimits.ts"
import { envelope } from "../kernel/Envelope.ts"
import { Contacts } from "./Contacts.ts"

export const ContactHttp = HttpApiBuilder.group(
  Api,
  "contact",
  Effect.fnUntraced(function* (handlers) {
    const contacts = yield* Contacts
    const limits = yield* RateLimits
    return handlers
      .handle("clientToken", ({ payload, request }) =>
        Effect.andThen(limits.take("client_token", request), contacts.token(payload.service_client_id))
      )
      .handle("contact", ({ payload, request }) =>
        Effect.andThen(
          limits.take("contact", request),
          Effect.as(contacts.write(request.headers["authorization"], payload), envelope({ received: true as const }))
        )
      )
  })
)
