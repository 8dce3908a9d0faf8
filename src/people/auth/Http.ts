import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Duration, Effect, Schema } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { RouteNotFound } from "../../http/contract/Problems.ts"
import { storable } from "../../http/lanes/Answer.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import { parse } from "../../http/transport/Json.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import type { RateLimitName, RateLimitsContract } from "../../http/transport/RateLimits.ts"
import { AuthApi, OAuthApi, ConsentApi, UserInfoApi, BrowserApi } from "./Api.ts"
import { described, scopes, scopeText } from "../credentials/Scope.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { Registration } from "../tenants/Registration.ts"
import { Identity } from "../../upstream/identity/Identity.ts"
import type { ProviderName } from "../../upstream/identity/Identity.ts"
import type { RefreshRequest, SignInRequest } from "./Api.ts"
import { Authorization } from "./Authorization.ts"
import { deviceGrant } from "./TokenEndpoint.ts"
import type { ConsentRequest, DeviceRequest, TokenRequest } from "./Authorization.ts"
import { Browser } from "./Browser.ts"
import { Clients } from "../credentials/Clients.ts"
import * as Devices from "./Devices.ts"
import { shownUserCode } from "./Devices.ts"
import { ClientIdNotFound, ClientIdRequired, OAuthRefusal, UnsupportedGrantType } from "./Problems.ts"
import { Sessions } from "./Sessions.ts"
import { SigningKeys } from "./SigningKeys.ts"

interface RequestParts<Payload> {
  readonly payload: Payload
  readonly request: HttpServerRequest.HttpServerRequest
}

export const AuthHttp = HttpApiBuilder.group(
  contract.add(AuthApi),
  "auth",
  Effect.fnUntraced(function* (handlers) {
    const identity = yield* Identity
    const registration = yield* Registration
    const sessions = yield* Sessions
    const signing = yield* SigningKeys
    const clients = yield* Clients
    const { service_name } = yield* ServiceInfo

    const knownClient = Effect.fnUntraced(function* (client_id: string | undefined) {
      if (client_id === undefined || client_id === "") {
        return yield* new ClientIdRequired({ message: `${service_name} client ID is required` })
      }
      if ((yield* clients.find(client_id, ["app", "oauth"])) === undefined) return yield* new ClientIdNotFound()
      return client_id
    })

    const limits = yield* RateLimits

    const signIn = (provider: ProviderName) =>
      Effect.fnUntraced(function* ({ payload, request }: RequestParts<typeof SignInRequest.Type>) {
        yield* limits.take("sign_in", request)
        const client_id = yield* knownClient(payload.client_id)
        const person = yield* identity.verify(provider, payload)
        const { account_id, created, home_tenant_id } = yield* storable(registration.signIn(person))
        const signedIn = { account_id, tenant_id: home_tenant_id, client_id, team_first: false, grant: "all" } as const
        const pair = yield* storable(sessions.open(signedIn))
        return envelope({ account_created: created, token_response: pair })
      })

    const refresh = Effect.fnUntraced(function* ({ payload, request }: RequestParts<typeof RefreshRequest.Type>) {
      yield* limits.take("token", request)
      const { grant_type = "refresh_token", refresh_token, tenant_id } = payload
      if (grant_type !== "refresh_token") {
        return yield* new UnsupportedGrantType({ message: `Unsupported grant_type: ${grant_type.slice(0, 200)}` })
      }
      const client_id = yield* knownClient(payload.client_id)
      if (refresh_token === undefined) {
        return yield* InvalidRequest.of("refresh_token", "required")
      }
      return envelope(yield* storable(sessions.refresh({ refresh_token, client_id, tenant_id })))
    })

    const configured = (provider: ProviderName) =>
      identity.configured.includes(provider) ? Effect.void : new RouteNotFound()

    return handlers
      .handle("google", signIn("google"))
      .handle("microsoft", signIn("microsoft"))
      .handle("provider", ({ path: { provider }, ...received }) =>
        Effect.zipRight(configured(provider), signIn(provider)(received))
      )
      .handle("refresh", refresh)
      .handle("refreshGoogle", refresh)
      .handle("refreshMicrosoft", refresh)
      .handle("refreshProvider", ({ path: { provider }, ...received }) =>
        Effect.zipRight(configured(provider), refresh(received))
      )
      .handle("revoke", ({ payload, request }) =>
        limits
          .take("token", request)
          .pipe(
            Effect.andThen(storable(sessions.revoke(payload.token))),
            Effect.as(envelope({ success: true as const }))
          )
      )
      .handle("keys", () =>
        Effect.sync(() => ({ keys: signing.published() as ReadonlyArray<Record<string, unknown>> }))
      )
  })
)

export const OAuthHttp = HttpApiBuilder.group(
  contract.add(OAuthApi),
  "oauth",
  Effect.fnUntraced(function* (handlers) {
    const authorization = yield* Authorization
    const limits = yield* RateLimits
    const { public_url, service_name } = yield* ServiceInfo
    const metadata = metadataOf(public_url)
    const asForm = formHandler(limits)
    return handlers
      .handle("request", ({ payload, request }) =>
        limits.take("authorize", request).pipe(
          Effect.andThen(authorization.check(payload)),
          Effect.mapError((problem) => withServiceName(problem, service_name)),
          Effect.map((consentRequest) => envelope(consentable(consentRequest)))
        )
      )
      .handleRaw("token", asForm("token", authorization.exchange))
      .handleRaw(
        "device",
        asForm("authorize", (form) =>
          Effect.map(authorization.beginDevice(form), (codes) => deviceResponse(codes, public_url))
        )
      )
      .handleRaw("revokeToken", asForm("token", authorization.revoke))
      .handle("discovery", () => Effect.succeed(metadata))
      .handle("authorizationServer", () => Effect.succeed(metadata))
  })
)

/** Returns the metadata that OpenID Connect Discovery and RFC 8414 define. */
const metadataOf = (public_url: string) => ({
  issuer: public_url,
  authorization_endpoint: `${public_url}/oauth/authorize`,
  token_endpoint: `${public_url}/v1/auth/oauth/token`,
  device_authorization_endpoint: `${public_url}/v1/auth/oauth/device`,
  revocation_endpoint: `${public_url}/v1/auth/oauth/revoke`,
  userinfo_endpoint: `${public_url}/v1/auth/oauth/userinfo`,
  jwks_uri: `${public_url}/.well-known/jwks.json`,
  scopes_supported: scopes,
  claims_supported: ["iss", "sub", "aud", "iat", "exp", "auth_time", "nonce", "email", "email_verified", "name"],
  response_types_supported: ["code"],
  response_modes_supported: ["query"],
  grant_types_supported: ["authorization_code", "refresh_token", deviceGrant],
  code_challenge_methods_supported: ["S256"],
  token_endpoint_auth_methods_supported: ["none"],
  revocation_endpoint_auth_methods_supported: ["none"],
  subject_types_supported: ["public"],
  id_token_signing_alg_values_supported: ["ES256"],
  authorization_response_iss_parameter_supported: true,
  request_parameter_supported: false,
  request_uri_parameter_supported: false,
  claims_parameter_supported: false
})

const consentable = ({ client, grant, redirect_uri, scope, state }: ConsentRequest) => ({
  client_id: client.client_id,
  client_name: client.name,
  scope,
  granted: scopeText(grant),
  allows: described(grant),
  trusted: grant === "all",
  redirect_uri,
  state: state ?? null
})

const deviceResponse = ({ device_code, user_code }: Devices.DeviceCodes, public_url: string) => ({
  device_code,
  user_code: shownUserCode(user_code),
  verification_uri: `${public_url}/oauth/device`,
  verification_uri_complete: `${public_url}/oauth/device?user_code=${shownUserCode(user_code)}`,
  expires_in: Duration.toSeconds(Devices.lifetime),
  interval: Duration.toSeconds(Devices.pause)
})

/** Handles an OAuth endpoint. It reads JSON or a form and responds with JSON or an empty body. Most errors contain the codes of RFC 6749 or 8628. */
const formHandler =
  (limits: RateLimitsContract) =>
  (limit: RateLimitName, answer: (form: OAuthForm) => Effect.Effect<object | void, OAuthRefusal | BooksUnavailable>) =>
  ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
    limits.take(limit, request).pipe(
      Effect.andThen(oauthForm(request)),
      Effect.flatMap((form) => storable(answer(form))),
      Effect.map((body) =>
        body === undefined
          ? HttpServerResponse.empty({ status: 200, headers: noStore })
          : HttpServerResponse.unsafeJson(body, { headers: noStore })
      ),
      Effect.catchTag("OAuthRefusal", ({ error, error_description, status }) =>
        Effect.succeed(
          HttpServerResponse.unsafeJson(
            { error, ...(error_description !== undefined && { error_description }) },
            { status, headers: noStore }
          )
        )
      )
    )

const noStore = { "cache-control": "no-store", pragma: "no-cache" }

interface OAuthForm extends TokenRequest, DeviceRequest {
  readonly token?: string | undefined
}

const oauthForm = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<OAuthForm, OAuthRefusal> =>
  Effect.flatMap(Effect.orDie(request.text), (text): Effect.Effect<OAuthForm, OAuthRefusal> => {
    const [type = ""] = (request.headers["content-type"] ?? "").split(";", 1)
    if (type.trim().toLowerCase() === "application/x-www-form-urlencoded") {
      return Effect.succeed(Object.fromEntries(new URLSearchParams(text)))
    }
    return Effect.mapError(Effect.flatMap(parse(Buffer.from(text)), readFields), () =>
      OAuthRefusal.of("invalid_request", "the body must be a JSON object or a form")
    )
  })

const text = Schema.optional(Schema.String)
const readFields = Schema.decodeUnknownEither(
  Schema.Struct({
    grant_type: text,
    code: text,
    redirect_uri: text,
    client_id: text,
    code_verifier: text,
    refresh_token: text,
    device_code: text,
    scope: text,
    token: text
  })
)

/** Adds the service's name to the message of `ClientIdRequired`; returns any other problem unchanged. */
const withServiceName = <E extends { readonly _tag: string }>(problem: E, service_name: string): E | ClientIdRequired =>
  problem._tag === "ClientIdRequired"
    ? new ClientIdRequired({ message: `${service_name} client ID is required` })
    : problem

export const ConsentHttp = HttpApiBuilder.group(
  contract.add(ConsentApi),
  "consent",
  Effect.fnUntraced(function* (handlers) {
    const authorization = yield* Authorization
    const { service_name } = yield* ServiceInfo
    return handlers.handle("code", ({ payload }) =>
      Effect.gen(function* () {
        const person = yield* CurrentCaller
        const consentRequest = yield* Effect.mapError(authorization.check(payload), (problem) =>
          withServiceName(problem, service_name)
        )
        const code = yield* storable(authorization.consent(person, consentRequest))
        return envelope({ code, state: consentRequest.state ?? null, redirect_uri: consentRequest.redirect_uri })
      })
    )
  })
)

export const UserInfoHttp = HttpApiBuilder.group(
  contract.add(UserInfoApi),
  "userinfo",
  Effect.fnUntraced(function* (handlers) {
    const authorization = yield* Authorization
    const userInfo = () => Effect.flatMap(CurrentCaller, ({ account_id }) => authorization.userInfo(account_id))
    return handlers.handle("userinfo", userInfo).handle("userinfoPosted", userInfo)
  })
)

export const BrowserHttp = HttpApiBuilder.group(
  contract.add(BrowserApi),
  "browser",
  Effect.fnUntraced(function* (handlers) {
    const browser = yield* Browser
    return handlers
      .handleRaw("authorize", ({ request }) => browser.authorize(request))
      .handleRaw("decide", ({ request }) => browser.decide(request))
      .handleRaw("device", ({ request }) => browser.device(request))
      .handleRaw("decideDevice", ({ request }) => browser.decideDevice(request))
      .handleRaw("signedIn", ({ request }) => browser.signedIn(request))
      .handleRaw("resume", ({ request }) => browser.resume(request))
      .handleRaw("returned", ({ path: { provider }, request }) => browser.returned(request, provider))
      .handleRaw("requestLink", ({ request }) => browser.requestLink(request))
      .handleRaw("followLink", ({ request }) => browser.followLink(request))
  })
)
