/**
 * The security middleware. It authenticates each request on the router and in the fast lane.
 *
 * Where the specification is silent:
 * - The middleware checks the tenant in the path right after authentication, before the body and query are read.
 */
import { HttpRouter, HttpServerRequest } from "@effect/platform"
import type { Context, Redacted } from "effect"
import { Effect, Layer } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import type { InsufficientScope, InvalidToken, MissingAuthorization } from "../credentials/Problems.ts"
import { TenantMismatch, TenantMismatchUsage } from "../credentials/Problems.ts"
import type { Demand } from "../credentials/Scope.ts"
import { Authentication } from "../../http/lanes/Authentication.ts"
import type { Authenticate, Headed } from "../../http/lanes/Authentication.ts"
import { remembered } from "../../http/lanes/Caller.ts"
import * as Security from "../credentials/Security.ts"
import { Credentials } from "./Credentials.ts"

// Reads the header directly, because the platform's decoder does not distinguish a missing header from an empty one.
const headed = Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }): Headed => ({
  header: (name) => headers[name]
}))
const authorizationIn = (request: Headed): string | undefined => request.header("authorization")

/** Returns the `Authorization` header or, if it is missing or empty, `x-api-key` as a bearer token. */
const eitherIn = (request: Headed): string | undefined => {
  const authorization = authorizationIn(request)
  const key = request.header("x-api-key")
  return (authorization ?? "") === "" && key !== undefined && key !== "" ? `Bearer ${key}` : authorization
}

type TokenProblem = MissingAuthorization | InvalidToken | InsufficientScope

/** Middleware for user tokens. `E` lists its additional errors. */
interface Way<Self, E> extends Context.Tag<
  Self,
  { readonly user_token: (bearer: Redacted.Redacted) => Ask<TokenProblem | E> }
> {
  readonly demand: Demand
}
type Ask<E> = Effect.Effect<Caller, E, HttpRouter.HttpRouter.Provided>

const answered = <Self, E>(way: Way<Self, E>, then: (caller: Caller) => Ask<E>) =>
  Layer.effect(
    way,
    Effect.map(Credentials, ({ userToken }) => ({
      user_token: () =>
        Effect.flatMap(
          remembered(Effect.flatMap(headed, (request) => userToken(authorizationIn(request), way.demand))),
          then
        )
    }))
  )

const anywhere = (caller: Caller) => Effect.succeed(caller)

const ofPath =
  <E>(mismatch: () => E) =>
  (caller: Caller): Ask<E> =>
    Effect.flatMap(HttpRouter.RouteContext, ({ params }) =>
      params["tenant_id"] === caller.tenant_id ? Effect.succeed(caller) : Effect.fail(mismatch())
    )
const ofTenant = ofPath(() => new TenantMismatch())

const anywhereWays = [
  Security.ProfileToken,
  Security.CallsToken,
  Security.TransfersToken,
  Security.BillingToken,
  Security.OrganizationToken,
  Security.SignInToken
]

export const SecurityHttp = Layer.mergeAll(
  answered(Security.ProfileToken, anywhere),
  answered(Security.CallsToken, anywhere),
  answered(Security.TransfersToken, anywhere),
  answered(Security.BillingToken, anywhere),
  answered(Security.OrganizationToken, anywhere),
  answered(Security.SignInToken, anywhere),
  answered(Security.TenantCallsToken, ofTenant),
  answered(Security.TenantBillingToken, ofTenant),
  answered(Security.TenantKeysToken, ofTenant),
  answered(Security.TenantTransfersToken, ofTenant),
  answered(
    Security.TenantUsageToken,
    ofPath(() => new TenantMismatchUsage())
  ),
  Layer.effect(
    Authentication,
    Effect.map(Credentials, ({ apiKey, keyOrToken, rememberedKey, userToken }) => {
      /** Returns a cached key's caller synchronously. Most keys are cached. */
      const soon = (authorization: string | undefined) => {
        const caller = rememberedKey(authorization)
        return caller === undefined ? keyOrToken(authorization) : Effect.succeed(caller)
      }
      return new Map<string, Authenticate>([
        [Security.KeyOrToken.key, (request) => soon(authorizationIn(request))],
        [Security.KeyOrTokenEitherHeader.key, (request) => soon(eitherIn(request))],
        [Security.ApiKey.key, (request) => apiKey(authorizationIn(request))],
        ...anywhereWays.map((way): [string, Authenticate] => [
          way.key,
          (request) => userToken(authorizationIn(request), way.demand)
        ])
      ])
    })
  ),
  Layer.effect(
    Security.KeyOrToken,
    Effect.map(Credentials, ({ keyOrToken }) => ({
      user_token_or_api_key: () => remembered(Effect.flatMap(headed, (request) => keyOrToken(authorizationIn(request))))
    }))
  ),
  Layer.effect(
    Security.KeyOrTokenOfKeys,
    Effect.map(Credentials, ({ keyOrToken }) => ({
      user_token_or_api_key: () =>
        remembered(
          Effect.flatMap(headed, (request) => keyOrToken(authorizationIn(request), Security.KeyOrTokenOfKeys.demand))
        )
    }))
  ),
  Layer.effect(
    Security.KeyOrTokenEitherHeader,
    Effect.map(Credentials, ({ keyOrToken }) => {
      const caller = remembered(Effect.flatMap(headed, (request) => keyOrToken(eitherIn(request))))
      return { user_token_or_api_key: () => caller, x_api_key: () => caller }
    })
  ),
  Layer.effect(
    Security.ApiKey,
    Effect.map(Credentials, ({ apiKey }) => ({
      api_key: () => remembered(Effect.flatMap(headed, (request) => apiKey(authorizationIn(request))))
    }))
  )
)
