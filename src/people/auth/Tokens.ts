/**
 * Access tokens: JWTs for one account in one tenant, valid for an hour and verified with the published keys. An ID token tells an application which
 * user signed in; it is not an access token.
 */
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { decodeProtectedHeader, jwtVerify, SignJWT } from "jose"
import type { JWTPayload } from "jose"
import { AccountId, TenantId } from "../../kernel/Ids.ts"
import { toDate } from "../../kernel/Moment.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { InvalidToken } from "../credentials/Problems.ts"
import { fromRow, toRow } from "../credentials/Scope.ts"
import type { Grant } from "../credentials/Scope.ts"
import { algorithm, signedLifetime, SigningKeys } from "./SigningKeys.ts"

export interface AccessToken {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly client_id: string
  /** The token's sign-in. When the sign-in ends, the token becomes invalid. */
  readonly family: string
  /** `true` for an application's token. Calls with this token charge the team's pool first. */
  readonly team_first: boolean
  readonly grant: Grant
}

/** The claims about the user that an application receives. */
export interface IdToken {
  readonly account_id: AccountId
  readonly client_id: string
  readonly nonce: string | null
  /** The time of the user's sign-in, in milliseconds; null if unknown. */
  readonly auth_time: number | null
  readonly email: string
  readonly email_verified: boolean
  readonly name: string
}

/** The contents of a valid token, and its expiry. */
export interface VerifiedToken extends AccessToken {
  readonly expires_at: number
}

export interface TokensContract {
  /** Signs an access token. `lifetime` defaults to `accessLifetime`. */
  readonly sign: (token: AccessToken, lifetime?: Duration.Duration) => Effect.Effect<string>
  readonly signId: (token: IdToken) => Effect.Effect<string>
  readonly verify: (jwt: string) => Effect.Effect<VerifiedToken, InvalidToken>
}

export const accessLifetime = signedLifetime

/** The `typ` header that distinguishes access tokens from ID tokens (RFC 9068). */
const accessType = "at+jwt"

export class Tokens extends Context.Tag("tollgate/auth/Tokens")<Tokens, TokensContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Tokens, make))
}

const toSeconds = (millis: number): number => Math.floor(millis / 1000)

const make = Effect.gen(function* () {
  const keys = yield* SigningKeys
  // The `iss` claim. Verification does not check the claim, so a change of `public_url` signs out no user.
  const { public_url: issuer } = yield* ServiceInfo

  const signed = Effect.fnUntraced(function* (
    typ: string,
    account: AccountId,
    client: string,
    claims: JWTPayload,
    lifetime: Duration.Duration
  ) {
    const now = toSeconds(yield* Clock.currentTimeMillis)
    const { key, kid } = keys.current()
    const jwt = new SignJWT(claims)
      .setProtectedHeader({ alg: algorithm, kid, typ })
      .setSubject(account)
      .setAudience(client)
      .setIssuer(issuer)
      .setIssuedAt(now)
      .setExpirationTime(now + Duration.toSeconds(lifetime))
      .setJti(crypto.randomUUID())
    return yield* Effect.promise(() => jwt.sign(key))
  })

  const sign = Effect.fn("Tokens.sign")((token: AccessToken, lifetime: Duration.Duration = accessLifetime) => {
    const { account_id, client_id, family, grant, team_first, tenant_id } = token
    const limits = grant === "all" ? {} : { scope: toRow(grant) }
    const claims = { tenant_id, sid: family, ...(team_first && { team_first }), ...limits }
    return signed(accessType, account_id, client_id, claims, lifetime)
  })

  const signId = Effect.fn("Tokens.signId")(({ account_id, auth_time, client_id, nonce, ...who }: IdToken) => {
    const signIn = { ...(nonce !== null && { nonce }), ...(auth_time !== null && { auth_time: toSeconds(auth_time) }) }
    return signed("JWT", account_id, client_id, { ...who, ...signIn }, accessLifetime)
  })

  const verify = Effect.fnUntraced(function* (jwt: string) {
    const key = yield* Effect.try({ try: () => decodeProtectedHeader(jwt).kid, catch: () => new InvalidToken() }).pipe(
      Effect.flatMap((kid) => (kid === undefined ? Effect.succeed(undefined) : keys.find(kid)))
    )
    if (key === undefined) return yield* new InvalidToken()
    const currentDate = toDate(yield* Clock.currentTimeMillis)
    const { payload } = yield* Effect.tryPromise({
      try: () =>
        jwtVerify(jwt, key, {
          algorithms: [algorithm],
          currentDate,
          typ: accessType,
          requiredClaims: ["sub", "exp", "aud"]
        }),
      catch: () => new InvalidToken()
    })
    const { scope, sid, tenant_id } = payload
    if (typeof tenant_id !== "string" || typeof sid !== "string") return yield* new InvalidToken()
    return {
      account_id: AccountId.make(payload.sub!),
      tenant_id: TenantId.make(tenant_id),
      client_id: String(payload.aud),
      family: sid,
      team_first: payload.team_first === true,
      grant: typeof scope === "string" ? fromRow(scope) : ("all" as const),
      expires_at: payload.exp! * 1000
    }
  })

  return { sign, signId, verify } satisfies TokensContract
})
