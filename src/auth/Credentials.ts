/** From an `Authorization` header to who calls, by the texts and the precedence of the specification. */
import { Context, Duration, Effect, Layer } from "effect"
import { Brand } from "../Brand.ts"
import type { CallerFacts } from "../http/Caller.ts"
import { ForeignKey, InvalidKey, InvalidKeyFormat, InvalidToken, MissingAuthorization } from "../http/Problems.ts"
import { Applications, cacheLifetime } from "../tenants/Applications.ts"
import { Belonging } from "../tenants/Belonging.ts"
import type { Mark } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Tokens } from "./Tokens.ts"

export type KeyProblem = MissingAuthorization | InvalidKeyFormat | ForeignKey | InvalidKey

interface Contract {
  /** Routes for user tokens only. */
  readonly userToken: (
    authorization: string | undefined
  ) => Effect.Effect<CallerFacts, MissingAuthorization | InvalidToken>
  /** Routes for both: read as a user token first, then as a key; so an expired user token is a key of no format. */
  readonly either: (authorization: string | undefined) => Effect.Effect<CallerFacts, KeyProblem>
  /** Routes for keys only. */
  readonly apiKey: (authorization: string | undefined) => Effect.Effect<CallerFacts, KeyProblem>
}

export class Credentials extends Context.Tag("tollgate/auth/Credentials")<Credentials, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Credentials, make))
}

const cachedMax = 50_000

const make = Effect.gen(function* () {
  const tokens = yield* Tokens
  const tenants = yield* Tenants
  const belonging = yield* Belonging
  const applications = yield* Applications
  const { key_prefix, service_name } = yield* Brand
  const verified = new Map<string, { readonly caller: CallerFacts; readonly until: number; readonly mark: Mark }>()

  const verify = Effect.fnUntraced(function* (jwt: string, now: number) {
    const { account_id, expires_at, team_first, tenant_id } = yield* tokens.verify(jwt)
    const mark = belonging.markOf(account_id)
    // The token is good for an hour; whether the person still belongs there is asked more often.
    if (!(yield* tenants.isActiveMember(account_id, tenant_id))) return yield* new InvalidToken()
    const caller: CallerFacts = { account_id, tenant_id, application_id: null, credential: "user_token", team_first }
    if (verified.size >= cachedMax) verified.delete(verified.keys().next().value!)
    verified.set(jwt, { caller, until: Math.min(expires_at, now + Duration.toMillis(cacheLifetime)), mark })
    return caller
  })

  const byToken = (bearer: string): Effect.Effect<CallerFacts, InvalidToken> =>
    Effect.clockWith((clock) => {
      const now = clock.unsafeCurrentTimeMillis()
      const known = verified.get(bearer)
      return known !== undefined && known.until > now && known.mark.current
        ? Effect.succeed(known.caller)
        : verify(bearer, now)
    })

  const byKey = (bearer: string): Effect.Effect<CallerFacts, InvalidKeyFormat | ForeignKey | InvalidKey> => {
    const segments = bearer.split("-")
    if (segments.length !== 3 || bearer.includes(".") || segments.includes("")) return new InvalidKeyFormat()
    if (segments[0] !== key_prefix) return new ForeignKey({ error: `API key is not a ${service_name} key` })
    return Effect.flatMap(applications.callerOf(bearer), (caller) =>
      caller === undefined ? new InvalidKey() : Effect.succeed(caller)
    )
  }

  const userToken: Contract["userToken"] = (authorization) => {
    if (authorization === undefined || authorization === "") return new MissingAuthorization()
    const bearer = bearerOf(authorization)
    return looksLikeToken(bearer) ? byToken(bearer) : new InvalidToken()
  }

  const apiKey: Contract["apiKey"] = (authorization) =>
    authorization === undefined || authorization === "" ? new MissingAuthorization() : byKey(bearerOf(authorization))

  const either: Contract["either"] = (authorization) => {
    if (authorization === undefined || authorization === "") return new MissingAuthorization()
    const bearer = bearerOf(authorization)
    return looksLikeToken(bearer) ? Effect.mapError(byToken(bearer), () => new InvalidKeyFormat()) : byKey(bearer)
  }

  return { userToken, either, apiKey } satisfies Contract
})

/** What stands behind `Bearer`; nothing at all where another scheme is used. */
const bearerOf = (authorization: string): string => /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ""

/** A token has dots, and a key has none. */
const looksLikeToken = (bearer: string): boolean => bearer.includes(".")
