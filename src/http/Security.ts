/** The ways a route may ask for a credential. Each provides the `Caller`; `auth/` says how. */
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Caller } from "./Caller.ts"
import {
  ForeignKey,
  InvalidKey,
  InvalidKeyFormat,
  InvalidToken,
  MissingAuthorization,
  TenantMismatch,
  TenantMismatchUsage
} from "./Problems.ts"

const bearer = HttpApiSecurity.bearer.pipe(
  HttpApiSecurity.annotate(OpenApi.Description, "Authorization: Bearer <credential>")
)

/** U: a live access token, else 401 `invalid or expired token`. */
export class UserToken extends HttpApiMiddleware.Tag<UserToken>()("tollgate/http/UserToken", {
  provides: Caller,
  failure: Schema.Union(MissingAuthorization, InvalidToken),
  security: { user_token: bearer }
}) {}

/** U, on a path with a `tenant_id`, which must be the token's; asked before anything else of the request is read. */
export class TenantToken extends HttpApiMiddleware.Tag<TenantToken>()("tollgate/http/TenantToken", {
  provides: Caller,
  failure: Schema.Union(MissingAuthorization, InvalidToken, TenantMismatch),
  security: { user_token: bearer }
}) {}

/** The same in the words of `usage` and `usage/rollup`. */
export class TenantTokenUsage extends HttpApiMiddleware.Tag<TenantTokenUsage>()("tollgate/http/TenantTokenUsage", {
  provides: Caller,
  failure: Schema.Union(MissingAuthorization, InvalidToken, TenantMismatchUsage),
  security: { user_token: bearer }
}) {}

/** K/U: read as a user token first, then as an API key. */
export class Either extends HttpApiMiddleware.Tag<Either>()("tollgate/http/Either", {
  provides: Caller,
  failure: Schema.Union(MissingAuthorization, InvalidKeyFormat, ForeignKey, InvalidKey),
  security: { user_token_or_api_key: bearer }
}) {}

/** K: read as an API key only. */
export class ApiKey extends HttpApiMiddleware.Tag<ApiKey>()("tollgate/http/ApiKey", {
  provides: Caller,
  failure: Schema.Union(MissingAuthorization, InvalidKeyFormat, ForeignKey, InvalidKey),
  security: { api_key: bearer }
}) {}
