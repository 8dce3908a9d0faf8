/**
 * From an `Authorization` header to who calls, by the texts and the precedence of the specification.
 *
 * Where the specification is silent:
 * - Keys and tokens are remembered for at most a minute. A key that is deleted stops at once in this process, and on every other node over
 *   PostgreSQL within two seconds.
 * - A key whose own end has come is 401 with the text of an invalid key, and the code `api_key_expired`; that is looked at with every call.
 * - An empty `Authorization` header counts as missing. A trailing slash is the same path.
 */
import { Context, Duration, Effect, Layer } from "effect"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { earlier } from "../../kernel/hot/Earlier.ts"
import {
  ForeignKey,
  InsufficientScope,
  InvalidKey,
  InvalidKeyFormat,
  InvalidToken,
  MissingAuthorization
} from "../credentials/Problems.ts"
import type { ExpiredKey } from "../credentials/Problems.ts"
import { includes } from "../credentials/Scope.ts"
import type { Demand, Grant } from "../credentials/Scope.ts"
import { Applications } from "../tenants/Applications.ts"
import { Belonging } from "../tenants/Belonging.ts"
import type { Mark } from "../tenants/Belonging.ts"
import { cacheLifetime } from "../tenants/KeyCallers.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Sessions } from "./Sessions.ts"
import { Tokens } from "./Tokens.ts"

export type KeyProblem = MissingAuthorization | InvalidKeyFormat | ForeignKey | InvalidKey | ExpiredKey

export interface CredentialsContract {
  /** Routes for user tokens only; a token of an application must have been allowed what the route demands. */
  readonly userToken: (
    authorization: string | undefined,
    demand: Demand
  ) => Effect.Effect<Caller, MissingAuthorization | InvalidToken | InsufficientScope>
  /**
   * Routes for both, all of which are calls: read as a user token first, then as a key; so an expired user token is a key of no
   * format.
   */
  readonly keyOrToken: (authorization: string | undefined) => Effect.Effect<Caller, KeyProblem | InsufficientScope>
  /** The caller that `keyOrToken` finds by a key, where that is known at this moment; `undefined` where it has to be asked. */
  readonly rememberedKey: (authorization: string | undefined) => Caller | undefined
  /** Routes for keys only. */
  readonly apiKey: (authorization: string | undefined) => Effect.Effect<Caller, KeyProblem>
}

export class Credentials extends Context.Tag("tollgate/auth/Credentials")<Credentials, CredentialsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Credentials, make))
}

const cachedMax = 50_000

/** Who calls by a token, and what the token allows. */
interface Holder {
  readonly caller: Caller
  readonly grant: Grant
}

interface Remembered extends Holder {
  readonly until: number
  readonly mark: Mark
}

const make = Effect.gen(function* () {
  const tokens = yield* Tokens
  const sessions = yield* Sessions
  const tenants = yield* Tenants
  const belonging = yield* Belonging
  const applications = yield* Applications
  const clock = yield* Effect.clock
  const { key_prefix, service_name } = yield* ServiceInfo
  /** Not Effect's `Cache`: every call by a token reads it, without an allocation. */
  const verified = new Map<string, Remembered>()

  const verify = Effect.fnUntraced(function* (jwt: string, now: number) {
    const { account_id, client_id, expires_at, family, grant, team_first, tenant_id } = yield* tokens.verify(jwt)
    const mark = belonging.markOf(account_id)
    // The token is good for an hour; whether its sign-in was ended, and the person still belongs there, is asked more often.
    if (!(yield* sessions.isLive(family))) return yield* new InvalidToken()
    if (!(yield* tenants.isActiveMember(account_id, tenant_id))) return yield* new InvalidToken()
    const caller = earlier<Caller>(verified.get(jwt)?.caller, {
      account_id,
      tenant_id,
      application_id: null,
      credential: "user_token",
      team_first,
      ...(team_first && { oauth_client: client_id, sign_in: family })
    })
    if (verified.size >= cachedMax) verified.delete(verified.keys().next().value!)
    const until = Math.min(expires_at, now + Duration.toMillis(cacheLifetime))
    const remembered: Remembered = { caller, grant, until, mark }
    verified.set(jwt, remembered)
    return remembered
  })

  const byToken = (bearer: string): Effect.Effect<Holder, InvalidToken> =>
    Effect.suspend(() => {
      const now = clock.unsafeCurrentTimeMillis()
      const known = verified.get(bearer)
      return known !== undefined && known.until > now && known.mark.current
        ? Effect.succeed(known)
        : verify(bearer, now)
    })

  const allowed = ({ caller, grant }: Holder, demand: Demand): Effect.Effect<Caller, InsufficientScope> => {
    if (demand !== "sign_in") return includes(grant, demand) ? Effect.succeed(caller) : lacking(demand)
    return caller.team_first ? notSignedIn : Effect.succeed(caller)
  }

  const byKey = (bearer: string): Effect.Effect<Caller, InvalidKeyFormat | ForeignKey | InvalidKey | ExpiredKey> => {
    const segments = bearer.split("-")
    if (segments.length !== 3 || bearer.includes(".") || segments.includes("")) return new InvalidKeyFormat()
    if (segments[0] !== key_prefix) return new ForeignKey({ message: `API key is not a ${service_name} key` })
    return Effect.flatMap(applications.callerOf(bearer), (caller) =>
      caller === undefined ? new InvalidKey() : Effect.succeed(caller)
    )
  }

  const userToken: CredentialsContract["userToken"] = (authorization, demand) => {
    if (authorization === undefined || authorization === "") return new MissingAuthorization()
    const bearer = bearerOf(authorization)
    if (!looksLikeToken(bearer)) return new InvalidToken()
    return Effect.flatMap(byToken(bearer), (holder) => allowed(holder, demand))
  }

  const apiKey: CredentialsContract["apiKey"] = (authorization) =>
    authorization === undefined || authorization === "" ? new MissingAuthorization() : byKey(bearerOf(authorization))

  const keyOrToken: CredentialsContract["keyOrToken"] = (authorization) => {
    if (authorization === undefined || authorization === "") return new MissingAuthorization()
    const bearer = bearerOf(authorization)
    if (!looksLikeToken(bearer)) return byKey(bearer)
    return Effect.flatMap(
      Effect.mapError(byToken(bearer), () => new InvalidKeyFormat()),
      (holder) => allowed(holder, "calls")
    )
  }

  const rememberedKey: CredentialsContract["rememberedKey"] = (authorization) =>
    authorization === undefined ? undefined : applications.rememberedCallerOf(bearerOf(authorization))

  return { userToken, keyOrToken, rememberedKey, apiKey } satisfies CredentialsContract
})

const lacking = (scope: Demand): InsufficientScope =>
  new InsufficientScope({
    message: `the application that holds this token has not been allowed this: it needs the scope ${scope}`,
    scope
  })

const notSignedIn = Effect.suspend(
  () =>
    new InsufficientScope({
      message: "only the person's own sign-in may do this, no application"
    })
)

/** What stands behind `Bearer`; nothing at all where another scheme is used. */
const bearerOf = (authorization: string): string => /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ""

/** A token has dots, and a key has none. */
const looksLikeToken = (bearer: string): boolean => bearer.includes(".")
