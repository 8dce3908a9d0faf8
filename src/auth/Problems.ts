import { Schema } from "effect"
import { BrokenRule } from "../kernel/InvalidRequest.ts"
import { Moment } from "../kernel/Moment.ts"
import { Problem } from "../kernel/Problem.ts"

/** Its text names the service: `Tollgate client ID is required`. */
export class ClientIdRequired extends Problem<ClientIdRequired>()("ClientIdRequired", {
  status: 400,
  error: "client ID is required",
  like: /client ID is required$/,
  fields: {
    field: Schema.propertySignature(Schema.String).pipe(Schema.withConstructorDefault(() => "client_id")),
    rule: Schema.propertySignature(Schema.String).pipe(Schema.withConstructorDefault(() => "required"))
  }
}) {}

export class ClientIdNotFound extends Problem<ClientIdNotFound>()("ClientIdNotFound", {
  status: 404,
  error: "Client ID not found"
}) {}

/** Its text repeats the value: `Unsupported grant_type: password`. */
export class UnsupportedGrantType extends Problem<UnsupportedGrantType>()("UnsupportedGrantType", {
  status: 400,
  error: "Unsupported grant_type: ",
  like: /^Unsupported grant_type: /,
  details: { field: "grant_type", rule: "refresh_token" }
}) {}

/** Its text names the word that is no scope. */
export class InvalidScope extends Problem<InvalidScope>()("InvalidScope", {
  status: 400,
  error: "scope: not known here",
  code: "invalid_scope",
  fields: BrokenRule
}) {}

/** A refresh token that is unknown, expired, revoked or used before. */
export class InvalidGrant extends Problem<InvalidGrant>()("InvalidGrant", {
  status: 401,
  error: "invalid or expired token",
  code: "invalid_grant"
}) {}

/** The identity provider's token does not hold: its signature, issuer, audience or time. */
export class IdentityRejected extends Problem<IdentityRejected>()("IdentityRejected", {
  status: 401,
  error: "the identity provider's token is not valid",
  code: "invalid_identity_token"
}) {}

/** The operator has suspended the person who signs in. */
export class AccountSuspended extends Problem<AccountSuspended>()("AccountSuspended", {
  status: 403,
  error: "this account is suspended: write to the operator of the service",
  code: "account_suspended"
}) {}

export class IdentityProviderUnavailable extends Problem<IdentityProviderUnavailable>()("IdentityProviderUnavailable", {
  status: 503,
  error: "the identity provider cannot be reached, try again shortly",
  code: "identity_provider_unavailable"
}) {}

export class IdentityProviderUnconfigured extends Problem<IdentityProviderUnconfigured>()(
  "IdentityProviderUnconfigured",
  { status: 503, error: "this identity provider is not configured here", code: "identity_provider_unconfigured" }
) {}

// ---- an Authorization header: one class for each text of the specification -------------------------------------------------

export class MissingAuthorization extends Problem<MissingAuthorization>()("MissingAuthorization", {
  status: 401,
  error: "missing Authorization header"
}) {}

/** User-token-only routes: anything but a live user token. */
export class InvalidToken extends Problem<InvalidToken>()("InvalidToken", {
  status: 401,
  error: "invalid or expired token"
}) {}

/** Neither a user token nor three dash-separated segments with the service's prefix; an expired user token too. */
export class InvalidKeyFormat extends Problem<InvalidKeyFormat>()("InvalidKeyFormat", {
  status: 401,
  error: "invalid API key format"
}) {}

export class InvalidKey extends Problem<InvalidKey>()("InvalidKey", { status: 401, error: "invalid API key" }) {}

/** The key's own end has come. */
export class ExpiredKey extends Problem<ExpiredKey>()("ExpiredKey", {
  status: 401,
  error: "invalid API key",
  code: "api_key_expired",
  fields: { expired_at: Moment }
}) {}

/** Key-shaped, with another prefix. Its text names the service: `API key is not a Tollgate key`. */
export class ForeignKey extends Problem<ForeignKey>()("ForeignKey", {
  status: 401,
  error: "API key is not a key of this service",
  like: /^API key is not a /
}) {}

/** A token of an application that the person has not allowed this. `WWW-Authenticate` names the scope that is missing. */
export class InsufficientScope extends Problem<InsufficientScope>()("InsufficientScope", {
  status: 403,
  error: "the application that holds this token may not do this",
  code: "insufficient_scope",
  /** The scope that is missing; `undefined` where no application may do it. */
  fields: { scope: Schema.optional(Schema.String) },
  details: {},
  headers: ({ scope }) => ({
    "www-authenticate": `Bearer error="insufficient_scope"${scope === undefined ? "" : `, scope="${scope}"`}`
  })
}) {}

/** The session in the console. */
export class SessionEnded extends Problem<SessionEnded>()("SessionEnded", {
  status: 401,
  error: "there is no session in this browser, or it has ended: sign in",
  code: "session_ended"
}) {}

// ---- the path's tenant ---------------------------------------------------------------------------------------------------

/** `usage` and `usage/rollup`. */
export class TenantMismatchUsage extends Problem<TenantMismatchUsage>()("TenantMismatchUsage", {
  status: 403,
  error: "Tenant ID in path does not match JWT"
}) {}

/** Every other money route. */
export class TenantMismatch extends Problem<TenantMismatch>()("TenantMismatch", {
  status: 403,
  error: "tenant ID in path does not match authenticated tenant"
}) {}

/** A refusal of the token endpoint, with the words of RFC 6749 and the status that they are answered with. */
export class OAuthRefusal extends Schema.TaggedError<OAuthRefusal>()("OAuthRefusal", {
  status: Schema.Literal(400, 401),
  error: Schema.String,
  error_description: Schema.optional(Schema.String)
}) {
  static of(error: string, error_description?: string, status: 400 | 401 = 400): OAuthRefusal {
    return new OAuthRefusal({ status, error, ...(error_description !== undefined && { error_description }) })
  }
  override get message() {
    return this.error_description ?? this.error
  }
}
