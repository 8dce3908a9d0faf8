import { Schema } from "effect"
import { BrokenRule } from "../kernel/InvalidRequest.ts"
import { Problem } from "../kernel/Problem.ts"

/** Its text names the service: `Tollgate client ID is required`. */
export class ClientIdRequired extends Problem<ClientIdRequired>()("ClientIdRequired", {
  status: 400,
  error: "client ID is required",
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

export class IdentityProviderUnavailable extends Problem<IdentityProviderUnavailable>()("IdentityProviderUnavailable", {
  status: 503,
  error: "the identity provider cannot be reached, try again shortly",
  code: "identity_provider_unavailable"
}) {}

export class IdentityProviderUnconfigured extends Problem<IdentityProviderUnconfigured>()(
  "IdentityProviderUnconfigured",
  { status: 503, error: "this identity provider is not configured here", code: "identity_provider_unconfigured" }
) {}
