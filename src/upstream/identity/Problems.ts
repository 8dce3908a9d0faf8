import { Problem } from "../../kernel/Problem.ts"

/** The signature, issuer, audience or time of the identity provider's token is invalid. */
export class IdentityRejected extends Problem<IdentityRejected>()("IdentityRejected", {
  status: 401,
  error: "the identity provider's token is not valid",
  code: "invalid_identity_token"
}) {}

export class IdentityProviderUnavailable extends Problem<IdentityProviderUnavailable>()("IdentityProviderUnavailable", {
  status: 503,
  error: "the identity provider cannot be reached; try again shortly",
  code: "identity_provider_unavailable"
}) {}

export class IdentityProviderUnconfigured extends Problem<IdentityProviderUnconfigured>()(
  "IdentityProviderUnconfigured",
  { status: 503, error: "this identity provider is not configured here", code: "identity_provider_unconfigured" }
) {}
