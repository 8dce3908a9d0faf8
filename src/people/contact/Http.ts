import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import { Effect, Layer } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { MissingAuthorization } from "../credentials/Problems.ts"
import { storable } from "../../http/lanes/Answer.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { ContactApi } from "./Api.ts"
import { Contacts } from "./Contacts.ts"
import { HeldClientToken } from "./HeldClientToken.ts"
import { ClientTokenOf } from "./Security.ts"

const ClientTokenHttp = Layer.effect(
  ClientTokenOf,
  Effect.gen(function* () {
    const contacts = yield* Contacts
    const limits = yield* RateLimits
    const held = (authorization: string | undefined) =>
      authorization === undefined || authorization === ""
        ? new MissingAuthorization()
        : contacts.find(/^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "")
    return {
      client_token: () =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          Effect.andThen(limits.take("contact", request), held(request.headers["authorization"]))
        )
    }
  })
)

export const ContactHttp = HttpApiBuilder.group(
  contract.add(ContactApi),
  "contact",
  Effect.fnUntraced(function* (handlers) {
    const contacts = yield* Contacts
    const limits = yield* RateLimits
    return handlers
      .handle("clientToken", ({ payload, request }) =>
        Effect.andThen(limits.take("client_token", request), storable(contacts.token(payload)))
      )
      .handle("contact", ({ payload, request }) =>
        Effect.gen(function* () {
          const token = yield* HeldClientToken
          yield* limits.take("contact_per_day", request)
          yield* storable(contacts.write({ token, message: payload }))
          return envelope({ received: true as const })
        })
      )
  })
).pipe(Layer.provide(ClientTokenHttp))
