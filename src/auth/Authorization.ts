/**
 * The OAuth 2.0 authorization code flow with PKCE: what an application asks for, the code that the person's consent gives it, and
 * the tokens that the code gives, once. Tokens from here charge the team's pool first.
 *
 * Where the specification is silent:
 * - Whoever proves a verified address is the account of that address, by whichever provider. An unverified address proves nothing.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import type { Caller } from "../kernel/Caller.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { fromRow, grantOf, includes, scopes, toRow } from "./Scope.ts"
import type { Grant } from "./Scope.ts"
import type { AccountId, TenantId } from "../kernel/Ids.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import * as Statements from "../ledger/Statements.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Clients, mayRedirect } from "./Clients.ts"
import type { Client } from "./Clients.ts"
import { DeploymentSecret } from "./DeploymentSecret.ts"
import type { Ending } from "./DeploymentSecret.ts"
import { ClientIdNotFound, ClientIdRequired, InvalidScope, OAuthRefusal } from "./Problems.ts"
import { Sessions } from "./Sessions.ts"
import type { TokenPair } from "./Sessions.ts"
import { Tokens } from "./Tokens.ts"

/** What an application asks for. */
export interface AuthorizationRequest {
  readonly client_id?: string | undefined
  readonly redirect_uri?: string | undefined
  readonly response_type?: string | undefined
  readonly scope?: string | undefined
  readonly state?: string | undefined
  /** What the ID token is to repeat. */
  readonly nonce?: string | undefined
  readonly code_challenge?: string | undefined
  readonly code_challenge_method?: string | undefined
}

/** The same, found to be in order. */
export interface ConsentRequest {
  readonly client: Client
  readonly redirect_uri: string
  /** As it was asked for. */
  readonly scope: string
  /** What the application gets if the person consents. */
  readonly grant: Grant
  readonly state: string | undefined
  readonly nonce: string | undefined
  readonly challenge: string
}

/** What an exchange answers: with an ID token where `openid` is in its scope. */
export interface Exchanged extends TokenPair {
  readonly id_token?: string
}

export interface TokenRequest {
  readonly grant_type?: string | undefined
  readonly code?: string | undefined
  readonly redirect_uri?: string | undefined
  readonly client_id?: string | undefined
  readonly code_verifier?: string | undefined
  readonly refresh_token?: string | undefined
}

/** Tokens are good for an hour, refresh tokens for a week; `ConsentRequest` comes from `check`. */
export interface AuthorizationContract {
  /** Whether what an application asks for is in order. */
  readonly check: (
    request: AuthorizationRequest
  ) => Effect.Effect<ConsentRequest, ClientIdRequired | ClientIdNotFound | InvalidRequest | InvalidScope>
  /** A code for what the person has consented to; good for a minute, once. */
  readonly consent: (
    person: Pick<Caller, "account_id" | "tenant_id">,
    request: ConsentRequest
  ) => Effect.Effect<string, BooksUnavailable>
  /** Tokens for a code, or for a refresh token. */
  readonly exchange: (request: TokenRequest) => Effect.Effect<Exchanged, OAuthRefusal | BooksUnavailable>
}

export const codeLifetime = Duration.seconds(60)
const nonceMax = 1_000

export class Authorization extends Context.Tag("tollgate/auth/Authorization")<Authorization, AuthorizationContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Authorization, make))
}

interface CodeRow {
  readonly client_id: string
  readonly redirect_uri: string
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly challenge: string
  readonly scope: string
  readonly nonce: string | null
  readonly expires_at: number
  readonly used_at: number | null
  readonly family_id: string | null
}

const invalidGrant = () =>
  OAuthRefusal.of("invalid_grant", "the code or token is not valid, has expired, or was used before")

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const clients = yield* Clients
  const sessions = yield* Sessions
  const tokens = yield* Tokens
  const tenants = yield* Tenants

  const check: AuthorizationContract["check"] = Effect.fn("Authorization.check")(function* (request) {
    const { client_id, code_challenge, code_challenge_method, nonce, redirect_uri, response_type, state } = request
    const { scope = "" } = request
    const wrong = (field: string, rule: string) => InvalidRequest.of(field, rule)
    if (client_id === undefined || client_id === "") return yield* new ClientIdRequired()
    const client = yield* clients.find(client_id, ["oauth"])
    if (client === undefined) return yield* new ClientIdNotFound()
    if (redirect_uri === undefined || !mayRedirect(client, redirect_uri)) {
      return yield* wrong("redirect_uri", "one that the application has registered")
    }
    if (response_type !== "code") return yield* wrong("response_type", "code")
    if (code_challenge_method !== "S256") return yield* wrong("code_challenge_method", "S256")
    if (code_challenge === undefined || !/^[A-Za-z0-9_-]{43}$/.test(code_challenge)) {
      return yield* wrong("code_challenge", "the SHA-256 of the verifier in base64url")
    }
    if (nonce !== undefined && nonce.length > nonceMax) return yield* wrong("nonce", `up to ${nonceMax} characters`)
    const granted = grantOf(scope, client.trusted === true)
    if ("unknown" in granted) {
      const unknown = granted.unknown.slice(0, 100)
      return yield* new InvalidScope({
        message: `scope: ${unknown} is not known here`,
        field: "scope",
        rule: `one or more of ${scopes.join(", ")}`
      })
    }
    return { client, redirect_uri, scope, grant: granted.grant, state, nonce, challenge: code_challenge }
  })

  const consent: AuthorizationContract["consent"] = Effect.fn("Authorization.consent")(function* (person, request) {
    const now = yield* Clock.currentTimeMillis
    const code = `oc_${randomBytes(32).toString("hex")}`
    const row = {
      hash: secret.hash("authorization_code", code),
      client_id: request.client.client_id,
      redirect_uri: request.redirect_uri,
      account_id: person.account_id,
      tenant_id: person.tenant_id,
      challenge: request.challenge,
      scope: toRow(request.grant),
      nonce: request.nonce ?? null,
      expires_at: now + Duration.toMillis(codeLifetime)
    }
    yield* Statements.write(
      writer,
      statement(sql`DELETE FROM tollgate_auth_codes WHERE expires_at < ${now - Duration.toMillis(Duration.days(1))}`),
      statement(sql`INSERT INTO tollgate_auth_codes ${sql.insert(row)}`)
    )
    return code
  })

  const knownClient = Effect.fnUntraced(function* (client_id: string | undefined) {
    const client = client_id === undefined || client_id === "" ? undefined : yield* clients.find(client_id, ["oauth"])
    return client ?? (yield* OAuthRefusal.of("invalid_client", "no such client", 401))
  })

  const byCode = Effect.fnUntraced(function* (client: Client, { code, code_verifier, redirect_uri }: TokenRequest) {
    if (code === undefined || code_verifier === undefined || redirect_uri === undefined) {
      return yield* OAuthRefusal.of("invalid_request", "code, redirect_uri and code_verifier are required")
    }
    const hash = secret.hash("authorization_code", code)
    const [row] = yield* Effect.orDie(
      sql<CodeRow>`SELECT client_id, redirect_uri, account_id, tenant_id, challenge, scope, nonce, expires_at, used_at, family_id
        FROM tollgate_auth_codes WHERE hash = ${hash}`
    )
    if (row === undefined || row.client_id !== client.client_id) return yield* invalidGrant()
    const now = yield* Clock.currentTimeMillis
    const spent = (family: string | null): Statement =>
      statement(
        sql`UPDATE tollgate_auth_codes SET used_at = ${now}, family_id = ${family}
          WHERE hash = ${hash} AND used_at IS NULL RETURNING hash`,
        1
      )
    const inOrder =
      row.expires_at > now && row.redirect_uri === redirect_uri && isVerifier(code_verifier, row.challenge)
    if (row.used_at === null && inOrder) {
      const grant = fromRow(row.scope)
      const { account_id, tenant_id } = row
      const signIn = { account_id, tenant_id, client_id: client.client_id, team_first: true, grant }
      // The code and what it gives are one transaction: whoever spends it a second time finds what to end.
      const pair = yield* sessions.openBeside(signIn, spent)
      if (pair !== undefined) {
        return includes(grant, "openid") ? { ...pair, id_token: yield* idToken(row) } : pair
      }
    }
    if (row.used_at === null && !inOrder) {
      // A wrong verifier burns the code too.
      if (yield* Statements.tryWrite(writer, spent(null))) return yield* invalidGrant()
    }
    // Somebody has a copy of it: what it gave ends.
    const [used] = yield* Effect.orDie(
      sql<{ family_id: string | null }>`SELECT family_id FROM tollgate_auth_codes WHERE hash = ${hash}`
    )
    if (used?.family_id != null) yield* sessions.end(row.account_id, used.family_id)
    return yield* invalidGrant()
  })

  const idToken = Effect.fnUntraced(function* ({ account_id, client_id, nonce }: CodeRow) {
    const [person] = yield* tenants.named([account_id])
    const { email = "", name = "" } = person ?? {}
    const email_verified = (yield* tenants.verifiedEmail(account_id)) === email
    return yield* tokens.signId({ account_id, client_id, nonce, email, email_verified, name })
  })

  const exchange: AuthorizationContract["exchange"] = Effect.fn("Authorization.exchange")(function* (request) {
    const { grant_type = "", refresh_token } = request
    if (grant_type !== "authorization_code" && grant_type !== "refresh_token") {
      return yield* OAuthRefusal.of(`Unsupported grant_type: ${grant_type.slice(0, 200)}`)
    }
    const client = yield* knownClient(request.client_id)
    if (grant_type === "authorization_code") return yield* byCode(client, request)
    if (refresh_token === undefined) {
      return yield* OAuthRefusal.of("invalid_request", "refresh_token is required")
    }
    return yield* Effect.catchTags(
      sessions.refresh({ refresh_token, client_id: client.client_id, tenant_id: undefined }),
      { InvalidGrant: invalidGrant, NotAMember: invalidGrant }
    )
  })

  return { check, consent, exchange } satisfies AuthorizationContract
})

/** RFC 7636: the challenge is the SHA-256 of the verifier. */
const isVerifier = (verifier: string, challenge: string): boolean => {
  if (!/^[A-Za-z0-9._~-]{43,128}$/.test(verifier)) return false
  const made = Buffer.from(createHash("sha256").update(verifier).digest("base64url"))
  const wanted = Buffer.from(challenge)
  return made.length === wanted.length && timingSafeEqual(made, wanted)
}

/** Under another secret no code is known any more. */
export const codesEnd: Ending = {
  count: (sql, now) => sql`SELECT count(*) AS n FROM tollgate_auth_codes WHERE used_at IS NULL AND expires_at > ${now}`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_auth_codes`)],
  notice: (n) => `${n} authorization codes end`
}
