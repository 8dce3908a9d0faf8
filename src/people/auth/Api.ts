/** Routes for sign-in, refresh, sign-out, OAuth and its pages, and the keys that verify access tokens. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Browsed, Example } from "../../http/contract/Documented.ts"
import { RateLimited, RouteNotFound } from "../../http/contract/Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { ProfileToken, SignInToken } from "../credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { AccountId, TenantId } from "../../kernel/Ids.ts"
import { AccountSuspended, NotAMember, NotInvited } from "../tenants/Problems.ts"
import { ClientIdNotFound, ClientIdRequired, InvalidGrant, InvalidScope, UnsupportedGrantType } from "./Problems.ts"
import {
  IdentityProviderUnavailable,
  IdentityProviderUnconfigured,
  IdentityRejected
} from "../../upstream/identity/Problems.ts"

/**
 * An authorization request. Required parameters are declared optional, so the handler can reject a missing parameter with the specification's text.
 */
export const AuthorizationRequest = Schema.Struct({
  client_id: Schema.optional(Schema.String),
  redirect_uri: Schema.optional(Schema.String),
  response_type: Schema.optional(Schema.String),
  scope: Schema.optional(Schema.String),
  state: Schema.optional(Schema.String),
  nonce: Schema.optional(Schema.String),
  code_challenge: Schema.optional(Schema.String),
  code_challenge_method: Schema.optional(Schema.String)
}).annotations({ identifier: "AuthorizationRequest" })
export interface AuthorizationRequest extends Schema.Schema.Type<typeof AuthorizationRequest> {}

/** The example in the OpenAPI document. Its challenge is the one in RFC 7636. */
const authorizationExample = {
  client_id: "{oauth_client_id}",
  redirect_uri: "{redirect_uri}",
  response_type: "code",
  scope: "openid calls",
  state: "af0ifjsldkj",
  code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  code_challenge_method: "S256"
} as const

/** The provider's token for the user, and the client that signs the user in. */
export const SignInRequest = Schema.Struct({
  id_token: Schema.optional(Schema.String),
  access_token: Schema.optional(Schema.String),
  client_id: Schema.optional(Schema.String)
}).annotations({ identifier: "SignInRequest" })

export const TokenResponse = Schema.Struct({
  access_token: Schema.String,
  token_type: Schema.Literal("Bearer"),
  expires_in: Schema.Int,
  refresh_token: Schema.String,
  /** The scope of an application's token. If it includes `openid`, the response also contains an ID token. */
  scope: Schema.optional(Schema.String),
  id_token: Schema.optional(Schema.String)
}).annotations({ identifier: "TokenResponse" })

const SignedIn = Schema.Struct({ account_created: Schema.Boolean, token_response: TokenResponse }).annotations({
  identifier: "SignedIn"
})

/**
 * Required fields are declared optional, so the handler can reject a missing field with the specification's text. A request with an unsupported grant
 * type need not contain a refresh token. `tenant_id` switches to another of the account's tenants.
 */
export const RefreshRequest = Schema.Struct({
  client_id: Schema.optional(Schema.String),
  grant_type: Schema.optional(Schema.String),
  refresh_token: Schema.optional(Schema.String),
  tenant_id: Schema.optional(TenantId)
}).annotations({ identifier: "RefreshRequest" })

const RevokeRequest = Schema.Struct({ token: Schema.String, token_type: Schema.optional(Schema.String) })

const Jwk = Schema.Record({ key: Schema.String, value: Schema.Unknown })

const signIn = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.post(name, path)
    .setPayload(SignInRequest)
    .addSuccess(Envelope(SignedIn))
    .addError(InvalidRequest)
    .addError(RateLimited)
    .addError(ClientIdRequired)
    .addError(ClientIdNotFound)
    .addError(AccountSuspended)
    .addError(NotInvited)
    .addError(IdentityRejected)
    .addError(IdentityProviderUnavailable)
    .addError(IdentityProviderUnconfigured)
    .annotate(Example, { body: { id_token: "{id_token}", client_id: "{client_id}" } })
    .annotate(
      OpenApi.Summary,
      name === "provider"
        ? "Sign in with any other configured identity provider"
        : `Sign in with ${name}; the first sign-in creates an account and its home tenant`
    )

const ofProvider = Schema.Struct({ provider: Schema.String })

const refresh = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.post(name, path)
    .setPayload(RefreshRequest)
    .addSuccess(Envelope(TokenResponse))
    .addError(InvalidRequest)
    .addError(RateLimited)
    .addError(ClientIdRequired)
    .addError(ClientIdNotFound)
    .addError(UnsupportedGrantType)
    .addError(InvalidGrant)
    .addError(NotAMember)
    .annotate(Example, {
      body: { client_id: "{client_id}", grant_type: "refresh_token", refresh_token: "{refresh_token}" }
    })
    .annotate(OpenApi.Summary, "Exchange a single-use refresh token for a new pair of tokens")

export class AuthApi extends HttpApiGroup.make("auth")
  .add(signIn("google", "/v1/auth/google"))
  .add(signIn("microsoft", "/v1/auth/microsoft"))
  .add(signIn("provider", "/v1/auth/:provider").setPath(ofProvider).addError(RouteNotFound))
  .add(refresh("refresh", "/v1/auth/token"))
  .add(refresh("refreshGoogle", "/v1/auth/google/refresh"))
  .add(refresh("refreshMicrosoft", "/v1/auth/microsoft/refresh"))
  .add(refresh("refreshProvider", "/v1/auth/:provider/refresh").setPath(ofProvider).addError(RouteNotFound))
  .add(
    HttpApiEndpoint.post("revoke", "/v1/auth/revoke")
      .setPayload(RevokeRequest)
      .addSuccess(Envelope(Schema.Struct({ success: Schema.Literal(true) })))
      .addError(InvalidRequest)
      .addError(RateLimited)
      .annotate(Example, { body: { token: "{refresh_token}", token_type: "refresh_token" } })
      .annotate(OpenApi.Summary, "End the sign-in of a refresh token")
  )
  .add(
    HttpApiEndpoint.get("keys", "/.well-known/jwks.json")
      .addSuccess(Schema.Struct({ keys: Schema.Array(Jwk) }))
      .annotate(OpenApi.Summary, "Get the public keys that verify access tokens")
  ) {}

const Consented = Schema.Struct({
  code: Schema.String,
  state: Schema.NullOr(Schema.String),
  redirect_uri: Schema.String
}).annotations({ identifier: "Consented" })

const Consentable = Schema.Struct({
  client_id: Schema.String,
  client_name: Schema.String,
  /** The requested scope. */
  scope: Schema.String,
  /** The scope that consent would grant, and its description for the user. */
  granted: Schema.String,
  allows: Schema.Array(Schema.String),
  /** Whether the operator trusts the application, which then may do everything that the user may do. */
  trusted: Schema.Boolean,
  redirect_uri: Schema.String,
  state: Schema.NullOr(Schema.String)
}).annotations({ identifier: "Consentable" })

const OAuthError = (status: 400 | 401) =>
  Schema.Struct({ error: Schema.String, error_description: Schema.optional(Schema.String) }).annotations(
    HttpApiSchema.annotations({ status, identifier: `OAuthError${status}` })
  )

/**
 * A request for tokens. Its fields depend on the grant type: `authorization_code`, `refresh_token`, or
 * `urn:ietf:params:oauth:grant-type:device_code`.
 */
const OAuthTokenRequest = Schema.Struct({
  grant_type: Schema.String,
  code: Schema.optional(Schema.String),
  redirect_uri: Schema.optional(Schema.String),
  client_id: Schema.optional(Schema.String),
  code_verifier: Schema.optional(Schema.String),
  refresh_token: Schema.optional(Schema.String),
  device_code: Schema.optional(Schema.String)
}).annotations({ identifier: "OAuthTokenRequest" })

const DeviceRequest = Schema.Struct({
  client_id: Schema.String,
  scope: Schema.optional(Schema.String)
}).annotations({ identifier: "DeviceRequest" })

const DeviceResponse = Schema.Struct({
  /** The code that the application sends when it polls the token endpoint. */
  device_code: Schema.String,
  /** The code that the user types on the page at `verification_uri`. `verification_uri_complete` already contains it. */
  user_code: Schema.String,
  verification_uri: Schema.String,
  verification_uri_complete: Schema.String,
  /** The lifetime of both codes in seconds. */
  expires_in: Schema.Int,
  /** The interval between polls, in seconds. */
  interval: Schema.Int
}).annotations({ identifier: "DeviceResponse" })

const RevocationRequest = Schema.Struct({
  token: Schema.String,
  token_type_hint: Schema.optional(Schema.String),
  client_id: Schema.String
}).annotations({ identifier: "RevocationRequest" })

/** Creates an endpoint that reports errors in the OAuth 2.0 format. */
const asApplication = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.post(name, path).addError(OAuthError(400)).addError(OAuthError(401)).addError(RateLimited)

/** OAuth 2.0 for applications: code flow with PKCE, device flow, revocation, metadata. */
export class OAuthApi extends HttpApiGroup.make("oauth")
  .add(
    HttpApiEndpoint.post("request", "/v1/auth/oauth/request")
      .setPayload(AuthorizationRequest)
      .addSuccess(Envelope(Consentable))
      .addError(InvalidRequest)
      .addError(ClientIdRequired)
      .addError(ClientIdNotFound)
      .addError(InvalidScope)
      .addError(RateLimited)
      .annotate(Example, { body: authorizationExample })
      .annotate(OpenApi.Summary, "Validate an authorization request before a consent page is shown")
  )
  .add(
    asApplication("token", "/v1/auth/oauth/token")
      .setPayload(OAuthTokenRequest)
      .addSuccess(TokenResponse)
      .annotate(Example, {
        body: {
          grant_type: "authorization_code",
          code: "{code}",
          redirect_uri: "{redirect_uri}",
          client_id: "{oauth_client_id}",
          code_verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        }
      })
      .annotate(OpenApi.Summary, "Exchange a code, a device code or a refresh token for tokens (JSON or form)")
  )
  .add(
    asApplication("device", "/v1/auth/oauth/device")
      .setPayload(DeviceRequest)
      .addSuccess(DeviceResponse)
      .annotate(Example, { body: { client_id: "{oauth_client_id}", scope: "openid calls" } })
      .annotate(OpenApi.Summary, "Start the device flow (RFC 8628; JSON or form)")
  )
  .add(
    asApplication("revokeToken", "/v1/auth/oauth/revoke")
      .setPayload(RevocationRequest)
      .addSuccess(Schema.Void.annotations(HttpApiSchema.annotations({ status: 200 })))
      .annotate(Example, { body: { token: "{refresh_token}", client_id: "{oauth_client_id}" } })
      .annotate(
        OpenApi.Summary,
        "End the sign-in of an application's token (RFC 7009); the response to an unknown token is identical"
      )
  )
  .add(
    HttpApiEndpoint.get("discovery", "/.well-known/openid-configuration")
      .addSuccess(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
      .annotate(OpenApi.Summary, "Get the OpenID Connect metadata for client libraries")
  )
  .add(
    HttpApiEndpoint.get("authorizationServer", "/.well-known/oauth-authorization-server")
      .addSuccess(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
      .annotate(OpenApi.Summary, "Get this metadata at the path that RFC 8414 defines")
  ) {}

const UserInfo = Schema.Struct({
  sub: AccountId,
  name: Schema.String,
  email: Schema.String,
  email_verified: Schema.Boolean
}).annotations({ identifier: "UserInfo" })

export class UserInfoApi extends HttpApiGroup.make("userinfo")
  .add(
    HttpApiEndpoint.get("userinfo", "/v1/auth/oauth/userinfo")
      .addSuccess(UserInfo)
      .annotate(OpenApi.Summary, "Get the claims about the access token's user (OpenID Connect)")
  )
  .add(
    HttpApiEndpoint.post("userinfoPosted", "/v1/auth/oauth/userinfo")
      .addSuccess(UserInfo)
      .annotate(OpenApi.Summary, "Get the claims about the access token's user, by POST (OpenID Connect)")
  )
  .middleware(ProfileToken) {}

/** Routes for consent with a user token, instead of on the browser pages. */
export class ConsentApi extends HttpApiGroup.make("consent")
  .add(
    HttpApiEndpoint.post("code", "/v1/auth/oauth/code")
      .setPayload(AuthorizationRequest)
      .addSuccess(Envelope(Consented))
      .addError(InvalidRequest)
      .addError(ClientIdRequired)
      .addError(ClientIdNotFound)
      .addError(InvalidScope)
      .annotate(Example, { body: authorizationExample })
      .annotate(OpenApi.Summary, "Consent to a request and get a code that works once, within a minute")
  )
  .middleware(SignInToken) {}

const Page = HttpApiSchema.Text({ contentType: "text/html" })

export class BrowserApi extends HttpApiGroup.make("browser")
  .add(
    HttpApiEndpoint.get("authorize", "/oauth/authorize")
      .addSuccess(Page)
      .annotate(Browsed, true)
      .annotate(
        OpenApi.Summary,
        "Show the page where a user signs in and decides; an application opens it with OAuth 2.0 parameters"
      )
  )
  .add(
    HttpApiEndpoint.post("decide", "/oauth/authorize")
      .addSuccess(Page)
      .annotate(Browsed, true)
      .annotate(OpenApi.Summary, "Submit the decision on the consent page")
  )
  .add(
    HttpApiEndpoint.get("device", "/oauth/device")
      .addSuccess(Page)
      .annotate(Browsed, true)
      .annotate(OpenApi.Summary, "Show the page where a user types a device's code and decides")
  )
  .add(
    HttpApiEndpoint.post("decideDevice", "/oauth/device")
      .addSuccess(Page)
      .annotate(Browsed, true)
      .annotate(OpenApi.Summary, "Submit the decision on the device page")
  )
  .add(
    HttpApiEndpoint.post("signedIn", "/oauth/signed-in")
      .addSuccess(Page)
      .annotate(Browsed, true)
      .annotate(OpenApi.Summary, "Receive a browser that returns from an identity provider")
  )
  .add(
    HttpApiEndpoint.get("returned", "/oauth/signed-in/:provider")
      .setPath(ofProvider)
      .addSuccess(Page)
      .annotate(Browsed, true)
      .annotate(OpenApi.Summary, "Receive a browser with a code, at the redirect URI of an identity provider")
  )
  .add(
    HttpApiEndpoint.post("requestLink", "/oauth/link")
      .addSuccess(Page)
      .annotate(Browsed, true)
      .annotate(OpenApi.Summary, "Request a sign-in link by email, from the sign-in page")
  )
  .add(
    HttpApiEndpoint.get("followLink", "/oauth/link")
      .addSuccess(Page)
      .annotate(Browsed, true)
      .annotate(OpenApi.Summary, "Follow an emailed link once, in the browser that requested it")
  )
  .add(
    HttpApiEndpoint.get("resume", "/oauth/continue")
      .addSuccess(Page)
      .annotate(Browsed, true)
      .annotate(OpenApi.Summary, "Continue the sign-in with the browser's cookie")
  ) {}
