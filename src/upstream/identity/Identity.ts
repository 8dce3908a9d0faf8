/**
 * The identity providers for signing in: OpenID Connect issuers under any name, and GitHub. Tokens are verified with the issuer's published keys.
 *
 * Where the specification is silent:
 * - A provider's `access_token` is accepted only if it is a signed token for one of our audiences. If opaque tokens were accepted, any other
 *   application could sign its users in here.
 * - An entry with a `client_id` signs browsers in through the code flow with PKCE. An entry with only `audiences` relies on a posted ID token. This
 *   requires a different redirect URI but no secret.
 * - If the ID token lacks the address or the groups, they are read from the userinfo endpoint. Claims in the ID token take precedence.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { createRemoteJWKSet, errors, jwtVerify } from "jose"
import type { JWTPayload, JWTVerifyGetKey } from "jose"
import { createHash } from "node:crypto"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { toDate } from "../../kernel/Moment.ts"
import { isStorable } from "../../kernel/StoredText.ts"
import * as Discovery from "./Discovery.ts"
import { requestTimeout } from "./Discovery.ts"
import { exchanged, readWith } from "./Endpoints.ts"
import * as GitHub from "./GitHub.ts"
import { IdentityProviderUnavailable, IdentityProviderUnconfigured, IdentityRejected } from "./Problems.ts"
import { groupsIn, statesGroups, text } from "./Provider.ts"
import type { ProviderName, ProviderSettings, Redemption, VerifiedIdentity } from "./Provider.ts"

export type { ProviderName, ProviderSettings, VerifiedIdentity } from "./Provider.ts"

export class IdentityProviders extends Context.Tag("tollgate/upstream/IdentityProviders")<
  IdentityProviders,
  { readonly [provider in ProviderName]?: ProviderSettings | undefined }
>() {}

export type IdentityProblem =
  | InvalidRequest
  | IdentityRejected
  | IdentityProviderUnavailable
  | IdentityProviderUnconfigured

type Failure = IdentityRejected | IdentityProviderUnavailable | IdentityProviderUnconfigured

export interface IdentityContract {
  readonly verify: (
    provider: ProviderName,
    tokens: {
      readonly id_token?: string | undefined
      readonly access_token?: string | undefined
      /** The nonce that the token must contain, if one was sent. */
      readonly nonce?: string | undefined
    }
  ) => Effect.Effect<VerifiedIdentity, IdentityProblem>
  /** Exchanges the code from the provider's page for the user's identity. */
  readonly redeem: (provider: ProviderName, redemption: Redemption) => Effect.Effect<VerifiedIdentity, Failure>
  /** In the order of the configuration. */
  readonly configured: ReadonlyArray<ProviderName>
  readonly nameOf: (provider: ProviderName) => string
  /** Returns whether the browser comes back with a `code` or posts an ID token in a `form`. */
  readonly flowOf: (provider: ProviderName) => "code" | "form"
  /** Builds the URL of the provider's sign-in page. The page sends the browser back to `redirect_uri`. */
  readonly signInPage: (
    provider: ProviderName,
    parameters: {
      readonly redirect_uri: string
      readonly nonce: string
      readonly state: string
      /** The PKCE verifier of the code flow. */
      readonly verifier?: string
      /** The user who wants to sign in, if known. */
      readonly login_hint?: string
    }
  ) => Effect.Effect<string, IdentityProviderUnavailable | IdentityProviderUnconfigured>
  /** Returns the providers that failed their last discovery request. Starts requests that are due, but does not wait for them. */
  readonly unreachable: Effect.Effect<ReadonlyArray<ProviderName>>
}

export class Identity extends Context.Tag("tollgate/upstream/Identity")<Identity, IdentityContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Identity, make))
}

interface Dependencies {
  readonly providers: ReadonlyMap<ProviderName, ProviderSettings>
  readonly discovery: Discovery.Discovery
  readonly keySets: Map<ProviderName, JWTVerifyGetKey>
}

const make = Effect.gen(function* () {
  const configured = Object.entries(yield* IdentityProviders).flatMap(([name, settings]) =>
    settings === undefined ? [] : [[name, settings] as const]
  )
  const dependencies: Dependencies = {
    providers: new Map(configured),
    discovery: Discovery.make(yield* Effect.scope),
    keySets: new Map()
  }
  const { discovery, providers } = dependencies
  return {
    verify: verifying(dependencies),
    redeem: redeeming(dependencies),
    signInPage: leading(dependencies),
    configured: configured.map(([name]) => name),
    nameOf: (provider) => providers.get(provider)?.name ?? wellKnown.get(provider) ?? provider,
    flowOf: (provider) => (providers.get(provider)?.client_id === undefined ? "form" : "code"),
    unreachable: Effect.map(
      Effect.filter(configured, ([, { issuer, kind }]) =>
        kind === "github" ? Effect.succeed(false) : Effect.map(discovery.isReachable(issuer), (it) => it === false)
      ),
      (found) => found.map(([name]) => name)
    )
  } satisfies IdentityContract
})

const wellKnown: ReadonlyMap<string, string> = new Map([
  ["google", "Google"],
  ["microsoft", "Microsoft"],
  ["github", "GitHub"]
])

const settingsOf = ({ providers }: Dependencies, provider: ProviderName) => {
  const settings = providers.get(provider)
  return settings === undefined ? new IdentityProviderUnconfigured() : Effect.succeed(settings)
}

// ---- tokens -------------------------------------------------------------------------------------------------------------

/** Returns the provider's key set. The set fetches the published keys, and fetches them again for an unknown key id. */
const keysOf = Effect.fnUntraced(function* (
  { discovery, keySets }: Dependencies,
  provider: ProviderName,
  { issuer, jwks_uri }: ProviderSettings
) {
  const known = keySets.get(provider)
  if (known !== undefined) return known
  const uri = jwks_uri ?? (yield* discovery.endpointOf(issuer, "jwks_uri"))
  // Another caller may have created the key set while this one waited for the document.
  const made = keySets.get(provider)
  if (made !== undefined) return made
  const keys = createRemoteJWKSet(new URL(uri), { timeoutDuration: requestTimeout, cooldownDuration: 5_000 })
  keySets.set(provider, keys)
  return keys
})

/** Verifies that this issuer signed the token for one of the audiences, and returns its claims. */
const claimsOf = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  provider: ProviderName,
  settings: ProviderSettings,
  token: string,
  { audiences, nonce }: { readonly audiences: ReadonlyArray<string>; readonly nonce: string | undefined }
): Effect.fn.Return<JWTPayload, Failure> {
  const keys = yield* keysOf(dependencies, provider, settings)
  const currentDate = toDate(yield* Clock.currentTimeMillis)
  const { payload } = yield* Effect.tryPromise({
    try: () =>
      jwtVerify(token, keys, {
        issuer: settings.issuer,
        audience: [...audiences],
        currentDate,
        clockTolerance: 60,
        requiredClaims: ["sub", "exp"]
      }),
    catch: (error) =>
      error instanceof errors.JOSEError && !providerFaults.has(error.code)
        ? new IdentityRejected()
        : new IdentityProviderUnavailable()
  })
  return nonce === undefined || payload.nonce === nonce ? payload : yield* new IdentityRejected()
})

/**
 * The error codes of jose for faults of the key set instead of the token: an invalid key set, a timeout, and the generic code. The generic code
 * stands for a wrong status or invalid JSON.
 */
const providerFaults: ReadonlySet<string> = new Set([
  errors.JOSEError.code,
  errors.JWKSInvalid.code,
  errors.JWKSTimeout.code
])

type Claims = Readonly<Record<string, unknown>>

const identityOf = (
  provider: ProviderName,
  settings: ProviderSettings,
  claims: Claims
): Effect.Effect<VerifiedIdentity, IdentityRejected> => {
  const subject = text(claims["sub"])
  if (subject === "" || !isStorable(subject)) return new IdentityRejected()
  const email = text(claims["email"]).trim().toLowerCase()
  return Effect.succeed({
    provider,
    subject,
    email,
    email_verified: email !== "" && (claims["email_verified"] ?? settings.trust_email) === true,
    name: text(claims["name"]) || email,
    groups: groupsIn(claims, settings)
  })
}

const verifying = (dependencies: Dependencies): IdentityContract["verify"] =>
  Effect.fn("Identity.verify")(function* (provider, { access_token, id_token, nonce }) {
    const settings = yield* settingsOf(dependencies, provider)
    const token = id_token || access_token
    if (token === undefined || token === "") {
      return yield* new InvalidRequest({ message: "id_token: required", field: "id_token", rule: "required" })
    }
    if (settings.kind === "github") return yield* new IdentityRejected()
    const { audiences } = settings
    return yield* identityOf(
      provider,
      settings,
      yield* claimsOf(dependencies, provider, settings, token, { audiences, nonce })
    )
  })

// ---- the code flow ------------------------------------------------------------------------------------------------------

const redeeming = (dependencies: Dependencies): IdentityContract["redeem"] =>
  Effect.fn("Identity.redeem")(function* (provider, redemption) {
    const settings = yield* settingsOf(dependencies, provider)
    if (settings.client_id === undefined) return yield* new IdentityRejected()
    if (settings.kind === "github") return yield* GitHub.redeemed(provider, settings, redemption)
    const { client_id, issuer } = settings
    const { iss, nonce } = redemption
    // Reject a response that another issuer sent to this issuer's redirect URI (RFC 9207).
    if (iss !== undefined && iss !== issuer) return yield* new IdentityRejected()
    const { discovery } = dependencies
    const endpoint = yield* discovery.endpointOf(issuer, "token_endpoint")
    const methods = (yield* discovery.documentOf(issuer))?.["token_endpoint_auth_methods_supported"]
    const { access_token, id_token } = yield* exchanged(endpoint, settings, redemption, methods)
    if (id_token === "") return yield* new IdentityRejected()
    const claims = yield* claimsOf(dependencies, provider, settings, id_token, { audiences: [client_id], nonce })
    if (claims["azp"] !== undefined && claims["azp"] !== client_id) return yield* new IdentityRejected()
    const complete = text(claims["email"]) !== "" && statesGroups(claims, settings)
    const more = complete || access_token === "" ? {} : yield* userInfo(dependencies, issuer, access_token, claims)
    return yield* identityOf(provider, settings, { ...more, ...claims })
  })

/** Reads the claims from the userinfo endpoint, if the provider has one. Fails with `IdentityRejected` if they are about another user. */
const userInfo = Effect.fnUntraced(function* (
  { discovery }: Dependencies,
  issuer: string,
  access_token: string,
  { sub }: JWTPayload
): Effect.fn.Return<Claims, IdentityRejected | IdentityProviderUnavailable> {
  if (text((yield* discovery.documentOf(issuer))?.["userinfo_endpoint"]) === "") return {}
  const url = yield* discovery.endpointOf(issuer, "userinfo_endpoint")
  const body = yield* readWith(access_token, url)
  if (typeof body !== "object" || body === null || !("sub" in body) || body.sub !== sub) {
    return yield* new IdentityRejected()
  }
  return body as unknown as Claims
})

const leading = (dependencies: Dependencies): IdentityContract["signInPage"] =>
  Effect.fn("Identity.signInPage")(function* (provider, { verifier, ...parameters }) {
    const settings = yield* settingsOf(dependencies, provider)
    const { audiences, client_id, issuer, kind, scope } = settings
    const page = new URL(
      kind === "github"
        ? GitHub.authorizationEndpoint(settings)
        : yield* dependencies.discovery.endpointOf(issuer, "authorization_endpoint")
    )
    const query =
      client_id === undefined
        ? // The browser posts the token to us in a form, so no secret is needed to fetch it.
          { response_type: "id_token", response_mode: "form_post", client_id: audiences[0]! }
        : {
            response_type: "code",
            client_id,
            ...(verifier !== undefined && {
              code_challenge: createHash("sha256").update(verifier).digest("base64url"),
              code_challenge_method: "S256"
            })
          }
    const whole = { ...query, scope: scope ?? (kind === "github" ? GitHub.scope : openidScope), ...parameters }
    for (const [name, value] of Object.entries(whole)) page.searchParams.set(name, value)
    return page.href
  })

const openidScope = "openid email profile"
