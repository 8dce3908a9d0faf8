/**
 * Sign-ins and what follows from them. A refresh token works once and is then replaced; one that comes back a second time has
 * been copied, and everything that followed from its sign-in ends.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import * as Ids from "../kernel/Ids.ts"
import type { AccountId, TenantId } from "../kernel/Ids.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { DeploymentSecret } from "./DeploymentSecret.ts"
import { NotAMember } from "../tenants/Problems.ts"
import { InvalidGrant } from "./Problems.ts"
import { accessLifetime, Tokens } from "./Tokens.ts"

export interface TokenPair {
  readonly access_token: string
  readonly token_type: "Bearer"
  /** Seconds. */
  readonly expires_in: number
  readonly refresh_token: string
}

export interface SignIn {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly client_id: string
  readonly team_first: boolean
}

interface Contract {
  readonly open: (signIn: SignIn) => Effect.Effect<TokenPair>
  /** The same, with the name by which what followed from it can be ended. */
  readonly begin: (signIn: SignIn) => Effect.Effect<{ readonly family: string; readonly pair: TokenPair }>
  /** Ends a sign-in by its name. */
  readonly end: (family: string) => Effect.Effect<void>
  /** A new pair for a refresh token, which is spent. `tenant_id` changes to another tenant of the account. */
  readonly refresh: (asked: {
    readonly refresh_token: string
    readonly client_id: string
    readonly tenant_id: TenantId | undefined
  }) => Effect.Effect<TokenPair, InvalidGrant | NotAMember>
  /** Ends the sign-in that a refresh token belongs to; a token that is none ends nothing. */
  readonly revoke: (token: string) => Effect.Effect<void>
}

/** How long a refresh token waits to be used, and how long a sign-in lasts however often it is refreshed. */
export const refreshLifetime = Duration.days(7)
export const familyLifetime = Duration.days(90)

export class Sessions extends Context.Tag("tollgate/auth/Sessions")<Sessions, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Sessions, make))
}

interface Row {
  readonly family_id: string
  readonly tenant_id: TenantId
  readonly expires_at: number
  readonly used_at: number | null
  readonly account_id: AccountId
  readonly client_id: string
  readonly team_first: number
  readonly signed_in_at: number
  readonly revoked_at: number | null
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const tokens = yield* Tokens
  const tenants = yield* Tenants

  /** A fresh token of a family, and the statement that stores it. */
  const issue = (family: string, tenant: TenantId, signedInAt: number, now: number) => {
    const token = `rt_${randomBytes(32).toString("hex")}`
    const expires_at = Math.min(
      now + Duration.toMillis(refreshLifetime),
      signedInAt + Duration.toMillis(familyLifetime)
    )
    const row = {
      hash: secret.hash("refresh_token", token),
      family_id: family,
      tenant_id: tenant,
      expires_at,
      used_at: null
    }
    return { token, stored: statement(sql`INSERT INTO tollgate_auth_refresh_tokens ${sql.insert(row)}`) }
  }

  const pair = (signIn: SignIn, refresh_token: string): Effect.Effect<TokenPair> =>
    Effect.map(tokens.sign(signIn), (access_token) => ({
      access_token,
      token_type: "Bearer",
      expires_in: Duration.toSeconds(accessLifetime),
      refresh_token
    }))

  const begin = Effect.fn("Sessions.begin")(function* (signIn: SignIn) {
    const now = yield* Clock.currentTimeMillis
    const family = Ids.at("fam", now)
    const { stored, token } = issue(family, signIn.tenant_id, now, now)
    const row = {
      id: family,
      account_id: signIn.account_id,
      client_id: signIn.client_id,
      team_first: signIn.team_first ? 1 : 0,
      signed_in_at: now,
      revoked_at: null
    }
    yield* Effect.orDie(
      writer.submit({
        postings: [],
        statements: [statement(sql`INSERT INTO tollgate_auth_families ${sql.insert(row)}`), stored, ...dead(now)]
      })
    )
    return { family, pair: yield* pair(signIn, token) }
  })

  const open = (signIn: SignIn) => Effect.map(begin(signIn), ({ pair }) => pair)

  /** Forgets a few tokens that have been dead for long, whenever somebody signs in. */
  const dead = (now: number) => [
    statement(sql`DELETE FROM tollgate_auth_refresh_tokens WHERE hash IN (SELECT hash FROM tollgate_auth_refresh_tokens
      WHERE expires_at < ${now - Duration.toMillis(familyLifetime)} ORDER BY expires_at LIMIT 20)`)
  ]

  const find = (token: string) =>
    sql<Row>`SELECT t.family_id, t.tenant_id, t.expires_at, t.used_at,
        f.account_id, f.client_id, f.team_first, f.signed_in_at, f.revoked_at
      FROM tollgate_auth_refresh_tokens t JOIN tollgate_auth_families f ON f.id = t.family_id
      WHERE t.hash = ${secret.hash("refresh_token", token)}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row)
    )

  const end = (family: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      submit(
        statement(
          sql`UPDATE tollgate_auth_families SET revoked_at = ${now} WHERE id = ${family} AND revoked_at IS NULL`
        )
      )
    )

  const submit = (...statements: ReadonlyArray<Statement>) => Effect.orDie(writer.submit({ postings: [], statements }))

  const refresh: Contract["refresh"] = Effect.fn("Sessions.refresh")(function* ({
    client_id,
    refresh_token,
    tenant_id
  }) {
    const now = yield* Clock.currentTimeMillis
    const row = yield* find(refresh_token)
    if (row === undefined || row.revoked_at !== null || row.client_id !== client_id) return yield* new InvalidGrant()
    if (row.used_at !== null) {
      yield* end(row.family_id)
      return yield* new InvalidGrant()
    }
    if (row.expires_at <= now) return yield* new InvalidGrant()
    const tenant = tenant_id ?? row.tenant_id
    if (!(yield* tenants.isActiveMember(row.account_id, tenant))) return yield* new NotAMember()

    const { stored, token } = issue(row.family_id, tenant, row.signed_in_at, now)
    const spent = statement(
      sql`UPDATE tollgate_auth_refresh_tokens SET used_at = ${now}
        WHERE hash = ${secret.hash("refresh_token", refresh_token)} AND used_at IS NULL
          AND EXISTS (SELECT 1 FROM tollgate_auth_families WHERE id = ${row.family_id} AND revoked_at IS NULL)
        RETURNING hash`,
      1
    )
    yield* writer.submit({ postings: [], statements: [spent, stored] }).pipe(
      // Two at once with one token: the second is a copy as much as one that comes a day later.
      Effect.catchTag("Conflict", () => Effect.andThen(end(row.family_id), new InvalidGrant())),
      Effect.catchAll((problem) => (problem instanceof InvalidGrant ? Effect.fail(problem) : Effect.die(problem)))
    )
    return yield* pair(
      { account_id: row.account_id, tenant_id: tenant, client_id, team_first: row.team_first === 1 },
      token
    )
  })

  const revoke = Effect.fn("Sessions.revoke")(function* (token: string) {
    const row = yield* find(token)
    if (row !== undefined) yield* end(row.family_id)
  })

  return { open, begin, end, refresh, revoke } satisfies Contract
})
