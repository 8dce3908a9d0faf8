/**
 * Fetches access tokens from a vendor's token endpoint. A Google Cloud service account sends a signed assertion (RFC 7523), and a Microsoft Entra
 * application an id and a secret (RFC 6749, section 4.4). Both need a single POST. `google-auth-library` and `@azure/identity` do much more (metadata
 * servers, command lines, browsers) and contain their own HTTP clients.
 *
 * Where the specification is silent:
 * - The first request that needs a token fetches it, and concurrent requests share it. During the last fifth of the token's lifetime (at most five
 *   minutes), the next request starts fetching a new token and uses the old one in the meantime.
 * - After a failure, an endpoint is not called again for a second. A request without a token is not sent. It fails like a request to an unreachable
 *   upstream, so the next upstream is tried and nothing is charged.
 * - A token that the vendor rejects (401) is dropped, and the next request fetches a new one. A token that is less than a minute old is not dropped.
 *   The vendor would probably reject a new one as well, and each call would contact the endpoint.
 */
import { Clock, Deferred, Effect, FiberId, Redacted } from "effect"
import type { Scope } from "effect"
import { SignJWT } from "jose"
import { createPrivateKey } from "node:crypto"
import * as Wire from "../wire/Wire.ts"

/** A service account's key, as in the JSON file that Google Cloud issues. */
export interface GoogleAccount {
  readonly kind: "google_cloud"
  readonly client_email: string
  readonly private_key_id: string
  /** PEM. */
  readonly private_key: Redacted.Redacted
  readonly token_uri: string
}

/** An application registered with Microsoft Entra. */
export interface EntraClient {
  readonly kind: "entra"
  /** `https://login.microsoftonline.com`, or the URL of a national cloud. */
  readonly authority: string
  readonly tenant_id: string
  readonly client_id: string
  readonly client_secret: Redacted.Redacted
  /** For example, `https://cognitiveservices.azure.com/.default`. */
  readonly scope: string
}

export type TokenHolder = GoogleAccount | EntraClient

export interface AccessTokens {
  readonly current: Effect.Effect<string, Wire.Unreachable>
  /** Reports that the vendor rejected this token. */
  readonly refused: (token: string) => Effect.Effect<void>
}

const googleScope = "https://www.googleapis.com/auth/cloud-platform"
/** An assertion's lifetime in seconds: Google's maximum. */
const assertionSeconds = 3_600
const requestTimeout = 10_000
const answerMax = 65_536
const afterFailure = 1_000
/** How old a rejected token must be before it is dropped, in milliseconds. */
const refusedAfter = 60_000
/** How long before its expiry a token is replaced at the earliest, in milliseconds. */
const aheadMax = 300_000

interface Token {
  readonly text: string
  readonly given_at: number
  /** From this time on, the next request starts to fetch a new token. */
  readonly replace_at: number
  readonly expires_at: number
}

const requestOf = async (holder: TokenHolder, now: number): Promise<URLSearchParams> => {
  if (holder.kind === "entra") {
    const { client_id, client_secret, scope } = holder
    const secret = Redacted.value(client_secret)
    return new URLSearchParams({ grant_type: "client_credentials", client_id, client_secret: secret, scope })
  }
  const seconds = Math.floor(now / 1_000)
  const assertion = await new SignJWT({ scope: googleScope })
    .setProtectedHeader({ alg: "RS256", typ: "JWT", kid: holder.private_key_id })
    .setIssuer(holder.client_email)
    .setAudience(holder.token_uri)
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + assertionSeconds)
    .sign(createPrivateKey(Redacted.value(holder.private_key)))
  return new URLSearchParams({ grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion })
}

const addressOf = (holder: TokenHolder): URL =>
  new URL(
    holder.kind === "entra"
      ? `${holder.authority.replace(/\/+$/, "")}/${encodeURIComponent(holder.tenant_id)}/oauth2/v2.0/token`
      : holder.token_uri
  )

/**
 * Reads the token from an endpoint's response. Returns `undefined` if the response contains none. Error messages are discarded, because they may
 * repeat the secret.
 */
const tokenIn = ({ body, status }: Wire.Whole, now: number): Token | undefined => {
  if (status !== 200) return undefined
  try {
    const { access_token: text, expires_in } = JSON.parse(body.toString("utf8"))
    // Accept only characters that are valid in a header value.
    if (typeof text !== "string" || !/^[\x21-\x7e]{1,16384}$/.test(text)) return undefined
    const lifetime = Number(expires_in) * 1_000
    if (!(lifetime > 0)) return undefined
    const expires_at = now + lifetime
    return { text, given_at: now, expires_at, replace_at: expires_at - Math.min(aheadMax, lifetime / 5) }
  } catch {
    return undefined
  }
}

const exchangeOf = (address: URL, form: URLSearchParams): Wire.WireRequest => ({
  method: "POST",
  path: address.pathname + address.search,
  headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
  body: form.toString()
})

export const make = (holder: TokenHolder): Effect.Effect<AccessTokens, never, Scope.Scope> =>
  Effect.gen(function* () {
    const address = addressOf(holder)
    const scope = yield* Effect.scope
    const wire = yield* Wire.make({ base_url: address.origin, silence_ms_max: requestTimeout })
    let token: Token | undefined
    let asking: Deferred.Deferred<string, Wire.Unreachable> | undefined
    let failed_at = Number.NEGATIVE_INFINITY

    const fail = (why: string) => new Wire.Unreachable({ reason: `no token from ${address.host}: ${why}` })

    const ask = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const form = yield* Effect.tryPromise({
        try: () => requestOf(holder, now),
        catch: () => fail("the key cannot sign")
      })
      const answer = yield* Effect.mapError(
        wire.exchange(exchangeOf(address, form), { limit: answerMax, timeout: requestTimeout, read_on: false }),
        ({ reason }) => fail(reason)
      )
      const given = tokenIn(answer, now)
      if (given === undefined) return yield* fail(`the response with status ${answer.status} contains no token`)
      token = given
      return given.text
    })

    // Only the wait is interruptible, because a request that is recorded but never begins would block its callers forever.
    const current = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const known = token !== undefined && now < token.expires_at ? token : undefined
        if (known !== undefined && now < known.replace_at) return Effect.succeed(known.text)
        if (asking === undefined && now - failed_at < afterFailure)
          return known === undefined
            ? fail("the last request failed less than a second ago")
            : Effect.succeed(known.text)
        const start = asking === undefined
        const answer = (asking ??= Deferred.unsafeMake(FiberId.none))
        // If the first caller is interrupted, the others must still get the token.
        const begin = start ? Effect.forkIn(settle(answer), scope) : Effect.void
        return Effect.zipRight(
          begin,
          known === undefined ? restore(Deferred.await(answer)) : Effect.succeed(known.text)
        )
      })
    )

    const settle = (answer: Deferred.Deferred<string, Wire.Unreachable>) =>
      Effect.onExit(Effect.interruptible(ask), (exit) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          asking = undefined
          if (exit._tag === "Failure") failed_at = now
          return Deferred.done(answer, exit)
        })
      )

    const refused = (text: string) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        if (token?.text === text && now - token.given_at >= refusedAfter) token = undefined
      })

    return { current, refused }
  })
