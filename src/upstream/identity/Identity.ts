/**
 * The identity providers that people sign in with: OpenID Connect issuers, their tokens verified against their published keys. The two
 * names are only names; any issuer can stand behind them.
 *
 * Where the specification is silent:
 * - An `access_token` of a provider is accepted only if it is a signed token for one of our audiences: with an opaque token, any other
 *   application could sign that person in here.
 */
import { Clock, Context, Deferred, Duration, Effect, FiberId, Layer } from "effect"
import { createRemoteJWKSet, errors, jwtVerify } from "jose"
import type { JWTVerifyGetKey } from "jose"
import { IdentityProviderUnavailable, IdentityProviderUnconfigured, IdentityRejected } from "./Problems.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { toDate } from "../../kernel/Moment.ts"
import { isStorable } from "../../kernel/StoredText.ts"

export type ProviderName = "google" | "microsoft"

export interface ProviderSettings {
  readonly issuer: string
  /** The client ids for which its tokens may have been made. */
  readonly audiences: ReadonlyArray<string>
  /** Where its keys are; its discovery document says so if this does not. */
  readonly jwks_uri?: string | undefined
  /** Its addresses are verified where its tokens do not say whether they are; one that says no is believed. */
  readonly trust_email?: boolean | undefined
}

export class IdentityProviders extends Context.Tag("tollgate/upstream/IdentityProviders")<
  IdentityProviders,
  { readonly [provider in ProviderName]?: ProviderSettings | undefined }
>() {}

/** A person as the provider vouches for them. */
export interface VerifiedIdentity {
  /** `email`: the operator vouches for the address. */
  readonly provider: ProviderName | "email"
  readonly subject: string
  /** In lower case; empty where the provider gives none. */
  readonly email: string
  readonly email_verified: boolean
  readonly name: string
}

export type IdentityProblem =
  | InvalidRequest
  | IdentityRejected
  | IdentityProviderUnavailable
  | IdentityProviderUnconfigured

export interface IdentityContract {
  readonly verify: (
    provider: ProviderName,
    tokens: {
      readonly id_token?: string | undefined
      readonly access_token?: string | undefined
      /** The nonce that the token must repeat, if one was sent. */
      readonly nonce?: string | undefined
    }
  ) => Effect.Effect<VerifiedIdentity, IdentityProblem>
  /** Which providers there are. */
  readonly configured: ReadonlyArray<ProviderName>
  /** The provider's own page for signing in, which posts a token to `redirect_uri`. */
  readonly signInPage: (
    provider: ProviderName,
    parameters: {
      readonly redirect_uri: string
      readonly nonce: string
      readonly state: string
      /** The person who wants to sign in, as far as is known. */
      readonly login_hint?: string
    }
  ) => Effect.Effect<string, IdentityProviderUnavailable | IdentityProviderUnconfigured>
}

export class Identity extends Context.Tag("tollgate/upstream/Identity")<Identity, IdentityContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(Identity, make))
}

const patience = 10_000
/** How long an issuer's document is remembered, and how long it is not asked again after it did not answer. */
const documentLifetime = Duration.toMillis(Duration.hours(1))
const afterFailure = Duration.toMillis(Duration.seconds(1))

/** An issuer's discovery document: `undefined` where it could not be had. */
type Document = { readonly [entry: string]: unknown } | undefined

interface Known {
  readonly document: Deferred.Deferred<Document>
  /** Until when it is not asked for again; while it is asked for, for ever. */
  until: number
  /** The last one that could be had. */
  last: Document
}

const make = Effect.gen(function* () {
  const providers = yield* IdentityProviders
  const keySets = new Map<ProviderName, JWTVerifyGetKey>()
  const documents = new Map<string, Known>()
  const scope = yield* Effect.scope

  /**
   * An issuer is asked once for all who want its document at that time. Uninterruptible but for the wait: an ask that is noted and never begins
   * would be waited for without end.
   */
  const documentOf = (issuer: string): Effect.Effect<Document> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const known = documents.get(issuer)
        if (known !== undefined && now < known.until) return restore(Deferred.await(known.document))
        const entry: Known = {
          document: Deferred.unsafeMake(FiberId.none),
          until: Number.POSITIVE_INFINITY,
          last: known?.last
        }
        documents.set(issuer, entry)
        // If the first caller leaves, the others wait on.
        return Effect.zipRight(Effect.forkIn(learn(issuer, entry), scope), restore(Deferred.await(entry.document)))
      })
    )

  const learn = Effect.fnUntraced(function* (issuer: string, entry: Known) {
    const document = yield* Effect.interruptible(fetched(issuer))
    const now = yield* Clock.currentTimeMillis
    entry.until = now + (document === undefined ? afterFailure : documentLifetime)
    // An issuer's keys of an hour ago are better than none.
    entry.last = document ?? entry.last
    yield* Deferred.succeed(entry.document, entry.last)
  })

  /** An address in an issuer's discovery document. */
  const discovered = Effect.fnUntraced(function* (issuer: string, what: "jwks_uri" | "authorization_endpoint") {
    const address = text((yield* documentOf(issuer))?.[what])
    return URL.canParse(address) ? new URL(address).href : yield* new IdentityProviderUnavailable()
  })

  /** The provider's published keys; an unknown key id fetches them anew. */
  const keysOf = Effect.fnUntraced(function* (provider: ProviderName, { issuer, jwks_uri }: ProviderSettings) {
    const known = keySets.get(provider)
    if (known !== undefined) return known
    const uri = jwks_uri ?? (yield* discovered(issuer, "jwks_uri"))
    // Of those that waited for the document together, the first has made it.
    const made = keySets.get(provider)
    if (made !== undefined) return made
    const keys = createRemoteJWKSet(new URL(uri), { timeoutDuration: patience, cooldownDuration: 5_000 })
    keySets.set(provider, keys)
    return keys
  })

  const verify: IdentityContract["verify"] = Effect.fn("Identity.verify")(function* (
    provider,
    { access_token, id_token, nonce }
  ) {
    const settings = providers[provider]
    if (settings === undefined) return yield* new IdentityProviderUnconfigured()
    // An access token is accepted only if it is a signed token for one of our audiences too: with an opaque token, any other application of
    // the person could sign in here as them.
    const token = id_token || access_token
    if (token === undefined || token === "") {
      return yield* new InvalidRequest({
        message: "id_token: required",
        field: "id_token",
        rule: "required"
      })
    }
    const keys = yield* keysOf(provider, settings)
    const currentDate = toDate(yield* Clock.currentTimeMillis)
    const { payload: claims } = yield* Effect.tryPromise({
      try: () =>
        jwtVerify(token, keys, {
          issuer: settings.issuer,
          audience: [...settings.audiences],
          currentDate,
          clockTolerance: 60,
          requiredClaims: ["sub", "exp"]
        }),
      catch: (error) =>
        error instanceof errors.JOSEError && !providerFaults.has(error.code)
          ? new IdentityRejected()
          : new IdentityProviderUnavailable()
    })
    if (nonce !== undefined && claims.nonce !== nonce) return yield* new IdentityRejected()
    const subject = text(claims.sub)
    if (subject === "" || !isStorable(subject)) return yield* new IdentityRejected()
    const email = text(claims.email).trim().toLowerCase()
    return {
      provider,
      subject,
      email,
      email_verified: email !== "" && (claims.email_verified ?? settings.trust_email) === true,
      name: text(claims.name) || email
    }
  })

  const signInPage: IdentityContract["signInPage"] = Effect.fn("Identity.signInPage")(function* (provider, parameters) {
    const settings = providers[provider]
    if (settings === undefined) return yield* new IdentityProviderUnconfigured()
    const page = new URL(yield* discovered(settings.issuer, "authorization_endpoint"))
    // The token comes straight to us, in a form, so no secret is needed to fetch it.
    const query = {
      response_type: "id_token",
      response_mode: "form_post",
      client_id: settings.audiences[0]!,
      scope: "openid email profile",
      ...parameters
    }
    for (const [name, value] of Object.entries(query)) page.searchParams.set(name, value)
    return page.href
  })

  const configured = (["google", "microsoft"] as const).filter((name) => providers[name] !== undefined)

  return { verify, configured, signInPage } satisfies IdentityContract
})

/** Errors that jose throws about the key set instead of the token: status not 200, no JSON (both generic), no key set, timeout. */
const providerFaults: ReadonlySet<string> = new Set([
  errors.JOSEError.code,
  errors.JWKSInvalid.code,
  errors.JWKSTimeout.code
])

const text = (value: unknown): string => (typeof value === "string" ? value : "")

const fetched = (issuer: string): Effect.Effect<Document> =>
  Effect.tryPromise(async (signal) => {
    const response = await fetch(`${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(patience)]),
      redirect: "error"
    })
    const document: unknown = response.ok ? await response.json() : undefined
    return typeof document === "object" && document !== null ? (document as Document) : undefined
  }).pipe(Effect.orElseSucceed(() => undefined))
