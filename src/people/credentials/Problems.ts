/** Refusals of a credential, and of a path that names another tenant than the credential does. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Problem } from "../../kernel/Problem.ts"

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
