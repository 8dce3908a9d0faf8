/**
 * Tokens that a vendor's token endpoint gives for a limited time: to a service account of Google Cloud (RFC 7523: a signed assertion), and to an
 * application of Microsoft Entra (RFC 6749, 4.4: id and secret). `google-auth-library` and `@azure/identity` do much more (metadata servers,
 * command lines, browsers), each with an HTTP client of its own; what is needed here is one POST.
 *
 * Where the specification is silent:
 * - A token is asked for by the first request that needs one, once for all who wait. From the last fifth of its time on (five minutes before its
 *   end at the earliest) the next request asks for another; it goes on with the old one meanwhile.
 * - An endpoint that does not give one is not asked again for a second. A request without a token was not sent: it fails as one whose
 *   upstream is not reached, so that the next upstream is tried, and nothing is charged.
 * - A token that the vendor refuses (401) is dropped, and the next request asks for another. One that is not a minute old is kept: another would
 *   be refused as well, and the endpoint would be asked for each call.
 */
import { Clock, Deferred, Effect, FiberId, Redacted } from "effect"
import type { Scope } from "effect"
import { SignJWT } from "jose"
import { createPrivateKey } from "node:crypto"
import * as Wire from "../wire/Wire.ts"

/** A service account's key, as Google Cloud gives it out in a JSON file. */
export interface GoogleAccount {
  readonly kind: "google_cloud"
  readonly client_email: string
  readonly private_key_id: string
  /** PEM. */
  readonly private_key: Redacted.Redacted
  readonly token_uri: string
}

/** An application that is registered with Microsoft Entra. */
export interface EntraClient {
  readonly kind: "entra"
  /** `https://login.microsoftonline.com`, or that of a national cloud. */
  readonly authority: string
  readonly tenant_id: string
  readonly client_id: string
  readonly client_secret: Redacted.Redacted
  /** `https://cognitiveservices.azure.com/.default`. */
  readonly scope: string
}

export type TokenHolder = GoogleAccount | EntraClient

export interface AccessTokens {
  readonly current: Effect.Effect<string, Wire.Unreachable>
  /** The vendor refused this token. */
  readonly refused: (token: string) => Effect.Effect<void>
}

const googleScope = "https://www.googleapis.com/auth/cloud-platform"
/** How long an assertion is good: the most that Google takes. */
const assertionSeconds = 3_600
const patience = 10_000
const answerMax = 65_536
const afterFailure = 1_000
/** How old a token must be to be dropped where it is refused. */
const refusedAfter = 60_000
/** How long before its end a token is replaced, at the earliest. */
const aheadMax = 300_000

interface Token {
  readonly text: string
  readonly given_at: number
  /** From when on another is asked for. */
  readonly replace_at: number
  readonly expires_at: number
}

/** Which address is asked, with which form. */
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

/** The token in an endpoint's answer; `undefined` where there is none. An error's words may repeat the secret: they are left out. */
const tokenIn = ({ body, status }: Wire.Whole, now: number): Token | undefined => {
  if (status !== 200) return undefined
  try {
    const { access_token: text, expires_in } = JSON.parse(body.toString("utf8"))
    // The characters of a header value, and nothing else.
    if (typeof text !== "string" || !/^[\x21-\x7e]{1,16384}$/.test(text)) return undefined
    const lifetime = Number(expires_in) * 1_000
    if (!(lifetime > 0)) return undefined
    const expires_at = now + lifetime
    return { text, given_at: now, expires_at, replace_at: expires_at - Math.min(aheadMax, lifetime / 5) }
  } catch {
    return undefined
  }
}

export const make = (holder: TokenHolder): Effect.Effect<AccessTokens, never, Scope.Scope> =>
  Effect.gen(function* () {
    const address = addressOf(holder)
    const scope = yield* Effect.scope
    const wire = yield* Wire.make({ base_url: address.origin, silence_ms_max: patience })
    let token: Token | undefined
    let asking: Deferred.Deferred<string, Wire.Unreachable> | undefined
    let failed_at = Number.NEGATIVE_INFINITY

    const fail = (why: string) => new Wire.Unreachable({ reason: `no token from ${address.host}: ${why}` })

    const ask = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const form = yield* Effect.tryPromise({
        try: () => requestOf(holder, now),
        catch: () => fail("its key cannot sign")
      })
      const answer = yield* Effect.mapError(
        wire.exchange(
          {
            method: "POST",
            path: address.pathname + address.search,
            headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
            body: form.toString()
          },
          { limit: answerMax, timeout: patience, read_on: false }
        ),
        ({ reason }) => fail(reason)
      )
      const given = tokenIn(answer, now)
      if (given === undefined) return yield* fail(`it answered ${answer.status} without one`)
      token = given
      return given.text
    })

    // Uninterruptible but for the wait: an ask that is noted and never begins would be waited for without end.
    const current = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const known = token !== undefined && now < token.expires_at ? token : undefined
        if (known !== undefined && now < known.replace_at) return Effect.succeed(known.text)
        if (asking === undefined && now - failed_at < afterFailure)
          return known === undefined ? fail("it gave none a moment ago") : Effect.succeed(known.text)
        const start = asking === undefined
        const answer = (asking ??= Deferred.unsafeMake(FiberId.none))
        // If the first caller leaves, the others wait on.
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
