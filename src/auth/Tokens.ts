/** Access tokens: signed JWTs for an hour, for one account in one tenant, verifiable by anyone with the published keys. */
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { decodeProtectedHeader, jwtVerify, SignJWT } from "jose"
import { AccountId, TenantId } from "../kernel/Ids.ts"
import { toDate } from "../kernel/Moment.ts"
import { InvalidToken } from "../http/Problems.ts"
import { algorithm, SigningKeys } from "./SigningKeys.ts"

export interface AccessToken {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly client_id: string
  /** Minted by the OAuth code exchange: the team pool is charged first. */
  readonly team_first: boolean
}

/** What a token was found to say, and until when. */
export interface VerifiedToken extends AccessToken {
  readonly expires_at: number
}

interface Contract {
  readonly sign: (token: AccessToken) => Effect.Effect<string>
  readonly verify: (jwt: string) => Effect.Effect<VerifiedToken, InvalidToken>
}

export const accessLifetime = Duration.hours(1)

/**
 * Who issues: what `iss` says, which is the address that the deployment is found at. We know our own tokens by our keys, so a
 * deployment that moves signs nobody out.
 */
export class TokenIssuer extends Context.Reference<TokenIssuer>()("tollgate/auth/TokenIssuer", {
  defaultValue: () => "tollgate"
}) {}

export class Tokens extends Context.Tag("tollgate/auth/Tokens")<Tokens, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Tokens, make))
}

const make = Effect.gen(function* () {
  const keys = yield* SigningKeys
  const issuer = yield* TokenIssuer

  const sign = Effect.fn("Tokens.sign")(function* ({ account_id, client_id, team_first, tenant_id }: AccessToken) {
    const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
    const { key, kid } = keys.current()
    const jwt = new SignJWT({ tenant_id, ...(team_first && { team_first }) })
      .setProtectedHeader({ alg: algorithm, kid, typ: "JWT" })
      .setSubject(account_id)
      .setAudience(client_id)
      .setIssuer(issuer)
      .setIssuedAt(now)
      .setExpirationTime(now + Duration.toSeconds(accessLifetime))
      .setJti(crypto.randomUUID())
    return yield* Effect.promise(() => jwt.sign(key))
  })

  const verify = Effect.fnUntraced(function* (jwt: string) {
    const key = yield* Effect.try({ try: () => decodeProtectedHeader(jwt).kid, catch: () => new InvalidToken() }).pipe(
      Effect.map((kid) => (kid === undefined ? undefined : keys.find(kid)))
    )
    if (key === undefined) return yield* new InvalidToken()
    const currentDate = toDate(yield* Clock.currentTimeMillis)
    const { payload } = yield* Effect.tryPromise({
      try: () => jwtVerify(jwt, key, { algorithms: [algorithm], currentDate, requiredClaims: ["sub", "exp", "aud"] }),
      catch: () => new InvalidToken()
    })
    if (typeof payload.tenant_id !== "string") return yield* new InvalidToken()
    return {
      account_id: AccountId.make(payload.sub!),
      tenant_id: TenantId.make(payload.tenant_id),
      client_id: String(payload.aud),
      team_first: payload.team_first === true,
      expires_at: payload.exp! * 1000
    }
  })

  return { sign, verify } satisfies Contract
})
