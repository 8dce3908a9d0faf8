/** Signing in, staying signed in, signing out; and the keys by which anyone can verify an access token. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { InvalidRequest } from "../http/Problems.ts"
import { Envelope } from "../kernel/Envelope.ts"
import { TenantId } from "../kernel/Ids.ts"
import { NotAMember } from "../tenants/Problems.ts"
import {
  ClientIdNotFound,
  ClientIdRequired,
  IdentityProviderUnavailable,
  IdentityProviderUnconfigured,
  IdentityRejected,
  InvalidGrant,
  UnsupportedGrantType
} from "./Problems.ts"

/** The provider's token for this person, and the application through which they come. */
export const SignInRequest = Schema.Struct({
  id_token: Schema.optional(Schema.String),
  access_token: Schema.optional(Schema.String),
  client_id: Schema.optional(Schema.String)
}).annotations({ identifier: "SignInRequest" })

export const TokenResponse = Schema.Struct({
  access_token: Schema.String,
  token_type: Schema.Literal("Bearer"),
  expires_in: Schema.Int,
  refresh_token: Schema.String
}).annotations({ identifier: "TokenResponse" })

const SignedIn = Schema.Struct({ account_created: Schema.Boolean, token_response: TokenResponse }).annotations({
  identifier: "SignedIn"
})

/**
 * What is required is optional here, so that the texts of the specification come first: another grant type has no refresh token.
 * `tenant_id`: a tenant in which the account is an active member, for a token of that one.
 */
export const RefreshRequest = Schema.Struct({
  client_id: Schema.optional(Schema.String),
  grant_type: Schema.optional(Schema.String),
  refresh_token: Schema.optional(Schema.String),
  tenant_id: Schema.optional(TenantId)
}).annotations({ identifier: "RefreshRequest" })

const RevokeRequest = Schema.Struct({ token: Schema.String, token_type: Schema.optional(Schema.String) })

const Jwk = Schema.Record({ key: Schema.String, value: Schema.Unknown })

const signIn = <const Name extends string>(name: Name) =>
  HttpApiEndpoint.post(name, `/v1/auth/${name}`)
    .setPayload(SignInRequest)
    .addSuccess(Envelope(SignedIn))
    .addError(InvalidRequest)
    .addError(ClientIdRequired)
    .addError(ClientIdNotFound)
    .addError(IdentityRejected)
    .addError(IdentityProviderUnavailable)
    .addError(IdentityProviderUnconfigured)
    .annotate(OpenApi.Summary, `Sign in with ${name}; the first time makes an account and its home tenant`)

const refresh = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.post(name, path)
    .setPayload(RefreshRequest)
    .addSuccess(Envelope(TokenResponse))
    .addError(InvalidRequest)
    .addError(ClientIdRequired)
    .addError(ClientIdNotFound)
    .addError(UnsupportedGrantType)
    .addError(InvalidGrant)
    .addError(NotAMember)
    .annotate(OpenApi.Summary, "A new pair of tokens for a refresh token, which is spent")

export class AuthApi extends HttpApiGroup.make("auth")
  .add(signIn("google"))
  .add(signIn("microsoft"))
  .add(refresh("refresh", "/v1/auth/token"))
  .add(refresh("refreshGoogle", "/v1/auth/google/refresh"))
  .add(refresh("refreshMicrosoft", "/v1/auth/microsoft/refresh"))
  .add(
    HttpApiEndpoint.post("revoke", "/v1/auth/revoke")
      .setPayload(RevokeRequest)
      .addSuccess(Envelope(Schema.Struct({ success: Schema.Literal(true) })))
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "End the sign-in that a refresh token belongs to")
  )
  .add(
    HttpApiEndpoint.get("keys", "/.well-known/jwks.json")
      .addSuccess(Schema.Struct({ keys: Schema.Array(Jwk) }))
      .annotate(OpenApi.Summary, "The public keys of access tokens")
  ) {}
