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
const requestHeaders = Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }): Headed => ({
  header: (name) => headers[name]
}))
const authorizationIn = (request: Headed): string | undefined => request.header("authorization")

/** Returns the `Authorization` header or, if it is missing or empty, `x-api-key` as a bearer token. */
const keyOrTokenIn = (request: Headed): string | undefined => {
  const authorization = authorizationIn(request)
  const key = request.header("x-api-key")
  return (authorization ?? "") === "" && key !== undefined && key !== "" ? `Bearer ${key}` : authorization
}

type TokenProblem = MissingAuthorization | InvalidToken | InsufficientScope

/** Middleware for user tokens. `E` lists its additional errors. */
interface TokenMiddleware<Self, E> extends Context.Tag<
  Self,
  { readonly user_token: (bearer: Redacted.Redacted) => CallerEffect<TokenProblem | E> }
> {
  readonly demand: Demand
}
type CallerEffect<E> = Effect.Effect<Caller, E, HttpRouter.HttpRouter.Provided>

const userTokenLayer = <Self, E>(
  tokenMiddleware: TokenMiddleware<Self, E>,
  then: (caller: Caller) => CallerEffect<E>
) =>
  Layer.effect(
    tokenMiddleware,
    Effect.map(Credentials, ({ userToken }) => ({
      user_token: () =>
        Effect.flatMap(
          remembered(
            Effect.flatMap(requestHeaders, (request) => userToken(authorizationIn(request), tokenMiddleware.demand))
          ),
          then
        )
    }))
  )

const anyTenant = (caller: Caller) => Effect.succeed(caller)

const matchingPath =
  <E>(mismatch: () => E) =>
  (caller: Caller): CallerEffect<E> =>
    Effect.flatMap(HttpRouter.RouteContext, ({ params }) =>
      params["tenant_id"] === caller.tenant_id ? Effect.succeed(caller) : Effect.fail(mismatch())
    )
const matchingTenant = matchingPath(() => new TenantMismatch())

const anyTenantTokens = [
  Security.ProfileToken,
  Security.CallsToken,
  Security.TransfersToken,
  Security.BillingToken,
  Security.OrganizationToken,
  Security.SignInToken
]

export const SecurityHttp = Layer.mergeAll(
  userTokenLayer(Security.ProfileToken, anyTenant),
  userTokenLayer(Security.CallsToken, anyTenant),
  userTokenLayer(Security.TransfersToken, anyTenant),
  userTokenLayer(Security.BillingToken, anyTenant),
  userTokenLayer(Security.OrganizationToken, anyTenant),
  userTokenLayer(Security.SignInToken, anyTenant),
  userTokenLayer(Security.TenantCallsToken, matchingTenant),
  userTokenLayer(Security.TenantBillingToken, matchingTenant),
  userTokenLayer(Security.TenantKeysToken, matchingTenant),
  userTokenLayer(Security.TenantTransfersToken, matchingTenant),
  userTokenLayer(
    Security.TenantUsageToken,
    matchingPath(() => new TenantMismatchUsage())
  ),
  Layer.effect(
    Authentication,
    Effect.map(Credentials, ({ apiKey, keyOrToken, rememberedKey, userToken }) => {
      /** Returns a cached key's caller synchronously. Most keys are cached. */
      const authenticate = (authorization: string | undefined) => {
        const caller = rememberedKey(authorization)
        return caller === undefined ? keyOrToken(authorization) : Effect.succeed(caller)
      }
      return new Map<string, Authenticate>([
        [Security.KeyOrToken.key, (request) => authenticate(authorizationIn(request))],
        [Security.KeyOrTokenEitherHeader.key, (request) => authenticate(keyOrTokenIn(request))],
        [Security.ApiKey.key, (request) => apiKey(authorizationIn(request))],
        ...anyTenantTokens.map((way): [string, Authenticate] => [
          way.key,
          (request) => userToken(authorizationIn(request), way.demand)
        ])
      ])
    })
  ),
  Layer.effect(
    Security.KeyOrToken,
    Effect.map(Credentials, ({ keyOrToken }) => ({
      user_token_or_api_key: () =>
        remembered(Effect.flatMap(requestHeaders, (request) => keyOrToken(authorizationIn(request))))
    }))
  ),
  Layer.effect(
    Security.KeyOrTokenOfKeys,
    Effect.map(Credentials, ({ keyOrToken }) => ({
      user_token_or_api_key: () =>
        remembered(
          Effect.flatMap(requestHeaders, (request) =>
            keyOrToken(authorizationIn(request), Security.KeyOrTokenOfKeys.demand)
          )
        )
    }))
  ),
  Layer.effect(
    Security.KeyOrTokenEitherHeader,
    Effect.map(Credentials, ({ keyOrToken }) => {
      const caller = remembered(Effect.flatMap(requestHeaders, (request) => keyOrToken(keyOrTokenIn(request))))
      return { user_token_or_api_key: () => caller, x_api_key: () => caller }
    })
  ),
  Layer.effect(
    Security.ApiKey,
    Effect.map(Credentials, ({ apiKey }) => ({
      api_key: () => remembered(Effect.flatMap(requestHeaders, (request) => apiKey(authorizationIn(request))))
    }))
  )
)
