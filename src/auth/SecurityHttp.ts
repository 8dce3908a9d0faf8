/** How the ways to ask for a credential are answered. */
import { HttpRouter, HttpServerRequest } from "@effect/platform"
import { Effect, Layer } from "effect"
import type { CallerFacts } from "../http/Caller.ts"
import { TenantMismatch, TenantMismatchUsage } from "../http/Problems.ts"
import { ApiKey, Either, TenantToken, TenantTokenUsage, UserToken } from "../http/Security.ts"
import { Credentials } from "./Credentials.ts"

// The platform's own decoding cannot tell a missing header from an empty one, so the header is read here.
const authorization = Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) => headers.authorization)

const ofPath =
  <E>(mismatch: () => E) =>
  (caller: CallerFacts): Effect.Effect<CallerFacts, E, HttpRouter.RouteContext> =>
    Effect.flatMap(HttpRouter.RouteContext, ({ params }) =>
      params["tenant_id"] === caller.tenant_id ? Effect.succeed(caller) : Effect.fail(mismatch())
    )

export const SecurityHttp = Layer.mergeAll(
  Layer.effect(
    UserToken,
    Effect.map(Credentials, ({ userToken }) => ({ user_token: () => Effect.flatMap(authorization, userToken) }))
  ),
  Layer.effect(
    TenantToken,
    Effect.map(Credentials, ({ userToken }) => ({
      user_token: () =>
        Effect.flatMap(
          Effect.flatMap(authorization, userToken),
          ofPath(() => new TenantMismatch())
        )
    }))
  ),
  Layer.effect(
    TenantTokenUsage,
    Effect.map(Credentials, ({ userToken }) => ({
      user_token: () =>
        Effect.flatMap(
          Effect.flatMap(authorization, userToken),
          ofPath(() => new TenantMismatchUsage())
        )
    }))
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
