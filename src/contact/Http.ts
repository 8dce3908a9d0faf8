import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import { Effect, Layer } from "effect"
import { Api } from "../Api.ts"
import { RateLimits } from "../http/RateLimits.ts"
import { envelope } from "../kernel/Envelope.ts"
import { Contacts } from "./Contacts.ts"
import { HeldClientToken } from "./HeldClientToken.ts"
import { ClientTokenOf } from "./Security.ts"

const ClientTokenHttp = Layer.effect(
  ClientTokenOf,
  Effect.gen(function* () {
    const contacts = yield* Contacts
    const limits = yield* RateLimits
    return {
      client_token: () =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          Effect.andThen(limits.take("contact", request), contacts.held(request.headers["authorization"]))
        )
    }
  })
)

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
      .handle("contact", ({ payload }) =>
        Effect.flatMap(HeldClientToken, (token) =>
          Effect.as(contacts.write(token, payload), envelope({ received: true as const }))
        )
      )
  })
).pipe(Layer.provide(ClientTokenHttp))
