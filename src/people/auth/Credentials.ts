/**
 * Authenticates requests by their `Authorization` header. The texts and the precedence of errors follow the
 * specification.
 *
 * Where the specification is silent:
 * - Keys and tokens are cached for at most a minute. A deleted key becomes invalid immediately in this process, and within two seconds on other nodes
 *   over PostgreSQL.
 * - Once a run ends, its key and the keys of all runs below it are rejected with 401, as quickly as a deleted key.
 * - An expired key is rejected with 401, the text for an invalid key and the code `api_key_expired`. Every call checks the expiry.
 * - An empty `Authorization` header counts as missing. A trailing slash in the path makes no difference.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Duration, Effect, Layer } from "effect"
import type { Clock } from "effect"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import type { ServiceFacts } from "../../kernel/ServiceInfo.ts"
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
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import * as RunCallers from "../runs/RunCallers.ts"
import { Applications } from "../tenants/Applications.ts"
import type { ApplicationsContract } from "../tenants/Applications.ts"
import { Belonging } from "../tenants/Belonging.ts"
import type { BelongingContract, Mark } from "../tenants/Belonging.ts"
import { cacheLifetime } from "../tenants/KeyCallers.ts"
import { Tenants } from "../tenants/Tenants.ts"
import type { TenantsContract } from "../tenants/Tenants.ts"
import { Sessions } from "./Sessions.ts"
import type { SessionsContract } from "./Sessions.ts"
import { Tokens } from "./Tokens.ts"
import type { TokensContract } from "./Tokens.ts"

export type KeyProblem = MissingAuthorization | InvalidKeyFormat | ForeignKey | InvalidKey | ExpiredKey

export interface CredentialsContract {
  /** Authenticates a request to a route that accepts only user tokens. An application's token must satisfy `demand`. */
  readonly userToken: (
    authorization: string | undefined,
    demand: Demand
  ) => Effect.Effect<Caller, MissingAuthorization | InvalidToken | InsufficientScope>
  /**
   * Authenticates a request to a route that accepts user tokens and keys. An application's token must satisfy `demand`, by default `calls`. A
   * credential with dots is read as a user token, and any other as a key. An invalid or expired user token fails with `InvalidKeyFormat`.
   */
  readonly keyOrToken: (
    authorization: string | undefined,
    demand?: Demand
  ) => Effect.Effect<Caller, KeyProblem | InsufficientScope>
  /** Returns the caller of a cached key without reading the database, or `undefined` if the header has no cached key. */
  readonly rememberedKey: (authorization: string | undefined) => Caller | undefined
  readonly apiKey: (authorization: string | undefined) => Effect.Effect<Caller, KeyProblem>
}

export class Credentials extends Context.Tag("tollgate/auth/Credentials")<Credentials, CredentialsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Credentials, make))
}

const make = Effect.gen(function* () {
  const belonging = yield* Belonging
  const clock = yield* Effect.clock
  const byToken = tokenReader({
    tokens: yield* Tokens,
    sessions: yield* Sessions,
    tenants: yield* Tenants,
    belonging,
    clock
  })
  const applications = yield* Applications
  const service = yield* ServiceInfo
  const runs = RunCallers.make(
    { sql: yield* SqlClient, secret: yield* DeploymentSecret, belonging, applications },
    clock
  )
  const byKey = keyReader(applications, runs, service)

  const userToken: CredentialsContract["userToken"] = (authorization, demand) => {
    if (authorization === undefined || authorization === "") return new MissingAuthorization()
    const bearer = bearerOf(authorization)
    if (!looksLikeToken(bearer)) return new InvalidToken({ is_key: isKeyOf(service, bearer) })
    return Effect.flatMap(byToken(bearer), (holder) => authorize(holder, demand))
  }

  const apiKey: CredentialsContract["apiKey"] = (authorization) =>
    authorization === undefined || authorization === "" ? new MissingAuthorization() : byKey(bearerOf(authorization))

  const keyOrToken: CredentialsContract["keyOrToken"] = (authorization, demand = "calls") => {
    if (authorization === undefined || authorization === "") return new MissingAuthorization()
    const bearer = bearerOf(authorization)
    if (!looksLikeToken(bearer)) return byKey(bearer)
    return Effect.flatMap(
      Effect.mapError(byToken(bearer), () => new InvalidKeyFormat()),
      (holder) => authorize(holder, demand)
    )
  }

  const rememberedKey: CredentialsContract["rememberedKey"] = (authorization) => {
    if (authorization === undefined) return undefined
    const bearer = bearerOf(authorization)
    return applications.rememberedCallerOf(bearer) ?? runs.remembered(bearer)
  }

  return { userToken, keyOrToken, rememberedKey, apiKey } satisfies CredentialsContract
})

/** Returns the header's bearer token, or an empty string if there is none. */
const bearerOf = (authorization: string): string => /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ""

/** Returns whether the bearer looks like a token. Tokens contain dots, but keys do not. */
const looksLikeToken = (bearer: string): boolean => bearer.includes(".")

// ---- user tokens --------------------------------------------------------------------------------------------------------

interface Holder {
  readonly caller: Caller
  readonly grant: Grant
}

interface CachedToken extends Holder {
  readonly until: number
  readonly mark: Mark
}

interface TokenDependencies {
  readonly tokens: TokensContract
  readonly sessions: SessionsContract
  readonly tenants: TenantsContract
  readonly belonging: BelongingContract
  readonly clock: Clock.Clock
}

const cachedMax = 50_000

const tokenReader = (dependencies: TokenDependencies) => {
  const { clock } = dependencies
  /** A plain map, because every call with a token reads it, and reads of Effect's `Cache` allocate. */
  const cache = new Map<string, CachedToken>()
  return (bearer: string): Effect.Effect<Holder, InvalidToken> =>
    Effect.suspend(() => {
      const now = clock.unsafeCurrentTimeMillis()
      const known = cache.get(bearer)
      return known !== undefined && known.until > now && known.mark.current
        ? Effect.succeed(known)
        : verify(dependencies, cache, bearer, now)
    })
}

const verify = Effect.fnUntraced(function* (
  { belonging, sessions, tenants, tokens }: TokenDependencies,
  cache: Map<string, CachedToken>,
  jwt: string,
  now: number
) {
  const { account_id, client_id, expires_at, family, grant, team_first, tenant_id } = yield* tokens.verify(jwt)
  const mark = belonging.markOf(account_id)
  // The token is valid for an hour, but the sign-in or the membership may have ended since.
  if (!(yield* sessions.isLive(family))) return yield* new InvalidToken()
  if (!(yield* tenants.isActiveMember(account_id, tenant_id))) return yield* new InvalidToken()
  const attributes = yield* tenants.attributes(tenant_id)
  const caller = earlier<Caller>(cache.get(jwt)?.caller, {
    account_id,
    tenant_id,
    application_id: null,
    credential: "user_token",
    team_first,
    ...(team_first && { oauth_client: client_id, sign_in: family }),
    ...(attributes && { attribution: true })
  })
  if (cache.size >= cachedMax) cache.delete(cache.keys().next().value!)
  const until = Math.min(expires_at, now + Duration.toMillis(cacheLifetime))
  const cached: CachedToken = { caller, grant, until, mark }
  cache.set(jwt, cached)
  return cached
})

const authorize = ({ caller, grant }: Holder, demand: Demand): Effect.Effect<Caller, InsufficientScope> => {
  if (demand !== "sign_in") return includes(grant, demand) ? Effect.succeed(caller) : missingScope(demand)
  return caller.team_first ? notSignedIn : Effect.succeed(caller)
}

const missingScope = (scope: Demand): InsufficientScope =>
  new InsufficientScope({
    message: `this application may not call this route; its token must contain the scope ${scope}`,
    scope
  })

const notSignedIn = Effect.suspend(
  () => new InsufficientScope({ message: "only the user's own sign-in may call this route, not an application" })
)

/** Returns whether the bearer has the format of this service's API keys. */
const isKeyOf = ({ key_prefix }: ServiceFacts, bearer: string): boolean =>
  bearer.startsWith(`${key_prefix}-`) && bearer.split("-").length === 3

// ---- API keys -----------------------------------------------------------------------------------------------------------

const keyReader =
  (
    applications: Pick<ApplicationsContract, "callerOf">,
    runs: Pick<ApplicationsContract, "callerOf">,
    { key_prefix, service_name }: ServiceFacts
  ) =>
  (bearer: string): Effect.Effect<Caller, InvalidKeyFormat | ForeignKey | InvalidKey | ExpiredKey> => {
    const segments = bearer.split("-")
    if (segments.length !== 3 || bearer.includes(".") || segments.includes("")) return new InvalidKeyFormat()
    if (segments[0] !== key_prefix) return new ForeignKey({ message: `API key is not a ${service_name} key` })
    const { callerOf } = bearer.startsWith(RunCallers.keyPrefix(key_prefix)) ? runs : applications
    return Effect.flatMap(callerOf(bearer), (caller) =>
      caller === undefined ? new InvalidKey() : Effect.succeed(caller)
    )
  }
