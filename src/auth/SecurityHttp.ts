/** How the three ways to ask for a credential are answered. */
import { HttpServerRequest } from "@effect/platform"
import { Effect, Layer } from "effect"
import { ApiKey, Either, UserToken } from "../http/Security.ts"
import { Credentials } from "./Credentials.ts"

// The platform's own decoding cannot tell a missing header from an empty one, so the header is read here.
const authorization = Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) => headers.authorization)

export const SecurityHttp = Layer.mergeAll(
  Layer.effect(
    UserToken,
    Effect.map(Credentials, ({ userToken }) => ({ user_token: () => Effect.flatMap(authorization, userToken) }))
  ),
  Layer.effect(
    Either,
    Effect.map(Credentials, ({ either }) => ({ user_token_or_api_key: () => Effect.flatMap(authorization, either) }))
  ),
  Layer.effect(
    ApiKey,
    Effect.map(Credentials, ({ apiKey }) => ({ api_key: () => Effect.flatMap(authorization, apiKey) }))
  )
)
