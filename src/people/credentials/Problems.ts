/** Errors about credentials, and about paths that contain another tenant. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Problem } from "../../kernel/Problem.ts"

// ---- the Authorization header: one class per text of the specification -----------------------------------------------------

export class MissingAuthorization extends Problem<MissingAuthorization>()("MissingAuthorization", {
  status: 401,
  error: "missing Authorization header"
}) {}

/**
 * On a route for user tokens, the credential is not a valid user token. The specification defines a single text for this case, so `WWW-Authenticate`
 * states whether the credential was an API key.
 */
export class InvalidToken extends Problem<InvalidToken>()("InvalidToken", {
  status: 401,
  error: "invalid or expired token",
  fields: { is_key: Schema.optional(Schema.Boolean) },
  details: {},
  headers: ({ is_key }): Record<string, string> => (is_key === true ? { "www-authenticate": notForKeys } : {})
}) {}

const notForKeys =
  'Bearer error="invalid_token", error_description="This route is for signed-in people; an API key cannot call it. ' +
  'Send the access token of a sign-in."'

/** The credential is neither a user token nor three segments joined by dashes. Invalid and expired user tokens also fail with this error. */
export class InvalidKeyFormat extends Problem<InvalidKeyFormat>()("InvalidKeyFormat", {
  status: 401,
  error: "invalid API key format"
}) {}

export class InvalidKey extends Problem<InvalidKey>()("InvalidKey", { status: 401, error: "invalid API key" }) {}

export class ExpiredKey extends Problem<ExpiredKey>()("ExpiredKey", {
  status: 401,
  error: "invalid API key",
  code: "api_key_expired",
  fields: { expired_at: Moment }
}) {}

/** The key has another prefix. The text contains the service's name: `API key is not a Tollgate key`. */
export class ForeignKey extends Problem<ForeignKey>()("ForeignKey", {
  status: 401,
  error: "API key is not a key of this service",
  like: /^API key is not a /
}) {}

/** An application's token lacks a scope. `WWW-Authenticate` contains the scope. */
export class InsufficientScope extends Problem<InsufficientScope>()("InsufficientScope", {
  status: 403,
  error: "the application that holds this token may not call this route",
  code: "insufficient_scope",
  /** The missing scope; `undefined` if applications may not call the route. */
  fields: { scope: Schema.optional(Schema.String) },
  details: {},
  headers: ({ scope }) => ({
    "www-authenticate": `Bearer error="insufficient_scope"${scope === undefined ? "" : `, scope="${scope}"`}`
  })
}) {}

// ---- the path's tenant ---------------------------------------------------------------------------------------------------

/** The text for `usage`, `usage/rollup` and `usage/series`. */
export class TenantMismatchUsage extends Problem<TenantMismatchUsage>()("TenantMismatchUsage", {
  status: 403,
  error: "Tenant ID in path does not match JWT"
}) {}

/** The text for all other routes. */
export class TenantMismatch extends Problem<TenantMismatch>()("TenantMismatch", {
  status: 403,
  error: "tenant ID in path does not match authenticated tenant"
}) {}
