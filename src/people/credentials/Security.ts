/**
 * Security middleware for contracts. Each middleware provides the `CurrentCaller`; `people/auth/SecurityHttp` implements it. Every middleware for
 * user tokens declares the scope that an application's token must contain.
 */
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import {
  ExpiredKey,
  ForeignKey,
  InsufficientScope,
  InvalidKey,
  InvalidKeyFormat,
  InvalidToken,
  MissingAuthorization,
  TenantMismatch,
  TenantMismatchUsage
} from "./Problems.ts"
import type { Demand } from "./Scope.ts"

const bearer = (format: string, description: string) =>
  HttpApiSecurity.bearer.pipe(
    HttpApiSecurity.annotate(OpenApi.Format, format),
    HttpApiSecurity.annotate(OpenApi.Description, `\`Authorization: Bearer …\` with ${description}`)
  )

const asToken = bearer(
  "JWT",
  "a user's access token, valid for an hour. A token from the user's own sign-in (`POST /v1/auth/google`) may do everything. A token from an application " +
    "(`POST /v1/auth/oauth/token`) must contain the scope of the operation."
)
const asKey = bearer(
  "<prefix>-prod-<64 hex digits>",
  "an API key of a tenant (`POST /v1/tenants/{tenant_id}/applications`). Valid until it is deleted, or until its `expires_at`. " +
    "The key of a run (`POST /v1/runs`) is also accepted; it contains `run` in place of `prod`."
)
const asKeyOrToken = bearer("JWT, or <prefix>-prod-<64 hex digits>", "a user token, an API key or the key of a run.")

const asHeader = HttpApiSecurity.apiKey({ key: "x-api-key", in: "header" }).pipe(
  HttpApiSecurity.annotate(
    OpenApi.Description,
    "The same credential in `x-api-key`, without an `Authorization` header."
  )
)

const TokenProblem = Schema.Union(MissingAuthorization, InvalidToken, InsufficientScope)

/** U: a valid access token; otherwise 401 `invalid or expired token`. */
const userToken =
  <Self>() =>
  <const D extends Demand>(demand: D) =>
    Object.assign(
      HttpApiMiddleware.Tag<Self>()(`tollgate/http/UserToken/${demand}`, {
        provides: CurrentCaller,
        failure: TokenProblem,
        security: { user_token: asToken }
      }),
      { demand }
    )

export class ProfileToken extends userToken<ProfileToken>()("profile") {}
export class CallsToken extends userToken<CallsToken>()("calls") {}
export class TransfersToken extends userToken<TransfersToken>()("transfers") {}
export class BillingToken extends userToken<BillingToken>()("billing") {}
export class OrganizationToken extends userToken<OrganizationToken>()("organization") {}
/** Only for a user's own sign-in. */
export class SignInToken extends userToken<SignInToken>()("sign_in") {}

/** U, on a path that contains the token's tenant. The check runs before the body and query are read. */
const tenantToken =
  <Self>() =>
  <const D extends Demand>(demand: D) =>
    Object.assign(
      HttpApiMiddleware.Tag<Self>()(`tollgate/http/TenantToken/${demand}`, {
        provides: CurrentCaller,
        failure: Schema.Union(TokenProblem, TenantMismatch),
        security: { user_token: asToken }
      }),
      { demand }
    )

export class TenantCallsToken extends tenantToken<TenantCallsToken>()("calls") {}
export class TenantBillingToken extends tenantToken<TenantBillingToken>()("billing") {}
export class TenantKeysToken extends tenantToken<TenantKeysToken>()("keys") {}
export class TenantTransfersToken extends tenantToken<TenantTransfersToken>()("transfers") {}

/** For `usage`, `usage/rollup` and `usage/series`. These routes have a specific error text for a tenant mismatch. */
export class TenantUsageToken extends Object.assign(
  HttpApiMiddleware.Tag<TenantUsageToken>()("tollgate/http/TenantUsageToken", {
    provides: CurrentCaller,
    failure: Schema.Union(TokenProblem, TenantMismatchUsage),
    security: { user_token: asToken }
  }),
  { demand: "calls" as const }
) {}

const KeyProblem = Schema.Union(MissingAuthorization, InvalidKeyFormat, ForeignKey, ExpiredKey, InvalidKey)
const KeyOrTokenProblem = Schema.Union(KeyProblem, InsufficientScope)

/** K/U: a credential with dots is read as a user token, and any other as an API key. */
export class KeyOrToken extends Object.assign(
  HttpApiMiddleware.Tag<KeyOrToken>()("tollgate/http/KeyOrToken", {
    provides: CurrentCaller,
    failure: KeyOrTokenProblem,
    security: { user_token_or_api_key: asKeyOrToken }
  }),
  { demand: "calls" as const }
) {}

/** K/U for objects that belong to keys. An application's token must contain the scope `keys`. */
export class KeyOrTokenOfKeys extends Object.assign(
  HttpApiMiddleware.Tag<KeyOrTokenOfKeys>()("tollgate/http/KeyOrTokenOfKeys", {
    provides: CurrentCaller,
    failure: KeyOrTokenProblem,
    security: { user_token_or_api_key: asKeyOrToken }
  }),
  { demand: "keys" as const }
) {}

/** K/U, or the header `x-api-key` that clients of Anthropic's protocol send. */
// @effect-diagnostics-next-line leakingRequirements:off -- authentication reads the request headers
export class KeyOrTokenEitherHeader extends Object.assign(
  HttpApiMiddleware.Tag<KeyOrTokenEitherHeader>()("tollgate/http/KeyOrTokenEitherHeader", {
    provides: CurrentCaller,
    failure: KeyOrTokenProblem,
    security: { user_token_or_api_key: asKeyOrToken, x_api_key: asHeader }
  }),
  { demand: "calls" as const }
) {}

/** K: read only as an API key. */
export class ApiKey extends HttpApiMiddleware.Tag<ApiKey>()("tollgate/http/ApiKey", {
  provides: CurrentCaller,
  failure: KeyProblem,
  security: { api_key: asKey }
}) {}
