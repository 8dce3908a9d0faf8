/**
 * Sign-ins and what follows from them. A refresh token works once and is then replaced; one that comes back a second time has
 * been copied, and everything that followed from its sign-in ends, access tokens included.
 *
 * Where the specification is silent:
 * - Of two refreshes at once with one token, the second counts as a theft: the whole sign-in ends.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { fromRow, scopeText, toRow } from "../credentials/Scope.ts"
import type { Grant } from "../credentials/Scope.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import type { Statement } from "../../books/ledger/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/Writer.ts"
import { Belonging } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/Ending.ts"
import { NotAMember } from "../tenants/Problems.ts"
import { InvalidGrant } from "./Problems.ts"
import { accessLifetime, Tokens } from "./Tokens.ts"

export interface TokenPair {
  readonly access_token: string
  readonly token_type: "Bearer"
  /** Seconds. */
  readonly expires_in: number
  readonly refresh_token: string
  /** What an application got; a sign-in's own pair has none. */
  readonly scope?: string
}

export interface SignIn {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly client_id: string
  /** Minted by the OAuth code exchange, and so an application's. */
  readonly team_first: boolean
  readonly grant: Grant
}

/** A sign-in that has not ended. */
export interface OpenSignIn {
  readonly id: string
  readonly client_id: string
  /** Whether an application holds it, by the code flow or the device flow. */
  readonly application: boolean
  readonly signed_in_at: number
}

export interface SessionsContract {
  readonly open: (signIn: SignIn) => Effect.Effect<TokenPair, BooksUnavailable>
  /**
   * The same in one transaction with what is `beside` it, which is told the name that the sign-in can be ended by; `undefined` if
   * that was refused.
   */
  readonly openBeside: (
    signIn: SignIn,
    beside: (family: string) => Statement
  ) => Effect.Effect<TokenPair | undefined, BooksUnavailable>
  /** A sign-in without a refresh token: it lasts until it is ended, and whoever holds it says for how long. Answers its name. */
  readonly begin: (signIn: SignIn) => Effect.Effect<string, BooksUnavailable>
  /** Ends a sign-in of the account by its name: its access tokens at once in this process, within a minute in others. */
  readonly end: (account: AccountId, family: string) => Effect.Effect<void, BooksUnavailable>
  /** The sign-ins of an account that have not ended, the newest first; 100 at most. */
  readonly ofAccount: (account: AccountId) => Effect.Effect<ReadonlyArray<OpenSignIn>>
  /**
   * Ends all sign-ins of an account, as `end` does one. `beside` is told how many there are, and stands in the same transaction. Answers that
   * number.
   */
  readonly endAll: (
    account: AccountId,
    beside: (open: number) => ReadonlyArray<Statement>
  ) => Effect.Effect<number, BooksUnavailable>
  /** For the transaction of another room: ends all sign-ins of an account. */
  readonly endingAll: (account: AccountId, now: number) => Statement
  /** Whether a sign-in has not been ended. */
  readonly isLive: (family: string) => Effect.Effect<boolean>
  /** A new pair for a refresh token, which is spent. `tenant_id` changes to another tenant of the account. */
  readonly refresh: (request: {
    readonly refresh_token: string
    readonly client_id: string
    readonly tenant_id: TenantId | undefined
  }) => Effect.Effect<TokenPair, InvalidGrant | NotAMember | BooksUnavailable>
  /** Ends the sign-in that a refresh token belongs to, if it is of this client where one is named; a token that is none ends nothing. */
  readonly revoke: (token: string, client_id?: string) => Effect.Effect<void, BooksUnavailable>
}

/** How long a refresh token waits to be used, and how long a sign-in lasts however often it is refreshed. */
export const refreshLifetime = Duration.days(7)
export const familyLifetime = Duration.days(90)

export class Sessions extends Context.Tag("tollgate/auth/Sessions")<Sessions, SessionsContract>() {
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
  readonly scope: string
  readonly signed_in_at: number
  readonly revoked_at: number | null
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const tokens = yield* Tokens
  const tenants = yield* Tenants
  const belonging = yield* Belonging

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

  const pair = (signIn: SignIn, family: string, refresh_token: string): Effect.Effect<TokenPair> =>
    Effect.map(tokens.sign({ ...signIn, family }), (access_token) => ({
      access_token,
      token_type: "Bearer",
      expires_in: Duration.toSeconds(accessLifetime),
      refresh_token,
      ...(signIn.team_first && { scope: scopeText(signIn.grant) })
    }))

  const familyOf = (signIn: SignIn, family: string, now: number): Statement => {
    const row = {
      id: family,
      account_id: signIn.account_id,
      client_id: signIn.client_id,
      team_first: signIn.team_first ? 1 : 0,
      scope: toRow(signIn.grant),
      signed_in_at: now,
      revoked_at: null
    }
    return statement(sql`INSERT INTO tollgate_auth_families ${sql.insert(row)}`)
  }

  const begin = Effect.fn("Sessions.begin")(function* (signIn: SignIn) {
    const now = yield* Clock.currentTimeMillis
    const family = Ids.at("fam", now)
    yield* Statements.write(writer, familyOf(signIn, family, now))
    return family
  })

  const openBeside = Effect.fn("Sessions.openBeside")(function* (
    signIn: SignIn,
    beside: ((family: string) => Statement) | undefined
  ) {
    const now = yield* Clock.currentTimeMillis
    const family = Ids.at("fam", now)
    const { stored, token } = issue(family, signIn.tenant_id, now, now)
    const opened = familyOf(signIn, family, now)
    const statements = [...(beside === undefined ? [] : [beside(family)]), opened, stored, ...dead(now)]
    return (yield* Statements.tryWrite(writer, ...statements)) ? yield* pair(signIn, family, token) : undefined
  })

  // Nothing stands beside it that could refuse it.
  const open = (signIn: SignIn) => Effect.map(openBeside(signIn, undefined), (opened) => opened!)

  /** Forgets a few tokens that have been dead for long, whenever somebody signs in. */
  const dead = (now: number) => [
    statement(sql`DELETE FROM tollgate_auth_refresh_tokens WHERE hash IN (SELECT hash FROM tollgate_auth_refresh_tokens
      WHERE expires_at < ${now - Duration.toMillis(familyLifetime)} ORDER BY expires_at LIMIT 20)`)
  ]

  const find = (token: string) =>
    sql<Row>`SELECT t.family_id, t.tenant_id, t.expires_at, t.used_at,
        f.account_id, f.client_id, f.team_first, f.scope, f.signed_in_at, f.revoked_at
      FROM tollgate_auth_refresh_tokens t JOIN tollgate_auth_families f ON f.id = t.family_id
      WHERE t.hash = ${secret.hash("refresh_token", token)}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row)
    )

  const isLive = (family: string) =>
    sql`SELECT 1 FROM tollgate_auth_families WHERE id = ${family} AND revoked_at IS NULL`.pipe(
      Effect.orDie,
      Effect.map((rows) => rows.length > 0)
    )

  const end = Effect.fnUntraced(function* (account: AccountId, family: string) {
    const now = yield* Clock.currentTimeMillis
    const ended = sql`UPDATE tollgate_auth_families SET revoked_at = ${now} WHERE id = ${family} AND revoked_at IS NULL`
    yield* afterCommit(Statements.write(writer, statement(ended)), belonging.changed(account))
  })

  const ofAccount: SessionsContract["ofAccount"] = Effect.fn("Sessions.ofAccount")(function* (account) {
    const since = (yield* Clock.currentTimeMillis) - Duration.toMillis(familyLifetime)
    const rows = yield* sql<Omit<OpenSignIn, "application"> & { readonly team_first: number }>`
      SELECT id, client_id, team_first, signed_in_at FROM tollgate_auth_families
      WHERE account_id = ${account} AND revoked_at IS NULL AND signed_in_at > ${since} ORDER BY id DESC LIMIT 100`
    return rows.map(({ team_first, ...row }) => ({ ...row, application: team_first === 1 }))
  }, Effect.orDie)

  const endingAll: SessionsContract["endingAll"] = (account, now) =>
    statement(
      sql`UPDATE tollgate_auth_families SET revoked_at = ${now} WHERE account_id = ${account} AND revoked_at IS NULL`
    )

  const endAll: SessionsContract["endAll"] = Effect.fn("Sessions.endAll")(function* (account, beside) {
    const now = yield* Clock.currentTimeMillis
    const [open] = yield* Effect.orDie(
      sql<{
        n: number
      }>`SELECT count(*) AS n FROM tollgate_auth_families WHERE account_id = ${account} AND revoked_at IS NULL`
    )
    const count = open?.n ?? 0
    yield* afterCommit(Statements.write(writer, endingAll(account, now), ...beside(count)), belonging.changed(account))
    return count
  })

  const refresh: SessionsContract["refresh"] = Effect.fn("Sessions.refresh")(function* ({
    client_id,
    refresh_token,
    tenant_id
  }) {
    const now = yield* Clock.currentTimeMillis
    const row = yield* find(refresh_token)
    if (row === undefined || row.revoked_at !== null || row.client_id !== client_id) return yield* new InvalidGrant()
    if (row.used_at !== null) {
      yield* end(row.account_id, row.family_id)
      return yield* new InvalidGrant()
    }
    if (row.expires_at <= now) return yield* new InvalidGrant()
    const tenant = tenant_id ?? row.tenant_id
    if (!(yield* tenants.isActiveMember(row.account_id, tenant))) return yield* new NotAMember({ tenant_id: tenant })

    const { stored, token } = issue(row.family_id, tenant, row.signed_in_at, now)
    const spent = statement(
      sql`UPDATE tollgate_auth_refresh_tokens SET used_at = ${now}
        WHERE hash = ${secret.hash("refresh_token", refresh_token)} AND used_at IS NULL
          AND EXISTS (SELECT 1 FROM tollgate_auth_families WHERE id = ${row.family_id} AND revoked_at IS NULL)
        RETURNING hash`,
      1
    )
    if (!(yield* Statements.tryWrite(writer, spent, stored))) {
      // Two at once with one token: the second is a copy as much as one that comes a day later.
      yield* end(row.account_id, row.family_id)
      return yield* new InvalidGrant()
    }
    const { account_id, family_id, scope, team_first } = row
    const signIn = { account_id, tenant_id: tenant, client_id, team_first: team_first === 1, grant: fromRow(scope) }
    return yield* pair(signIn, family_id, token)
  })

  const revoke = Effect.fn("Sessions.revoke")(function* (token: string, client_id?: string) {
    const row = yield* find(token)
    if (row === undefined || (client_id !== undefined && row.client_id !== client_id)) return
    yield* end(row.account_id, row.family_id)
  })

  return {
    open,
    openBeside,
    begin,
    end,
    ofAccount,
    endAll,
    endingAll,
    isLive,
    refresh,
    revoke
  } satisfies SessionsContract
})

/** Under another secret no refresh token is known any more: every sign-in ends. */
export const sessionsEnd: Ending = {
  // One without a refresh token is held by a browser.
  count: (sql, now) => sql`SELECT count(*) AS n FROM tollgate_auth_families f WHERE revoked_at IS NULL
    AND (EXISTS (SELECT 1 FROM tollgate_auth_refresh_tokens WHERE family_id = f.id AND expires_at > ${now})
      OR (signed_in_at > ${now - Duration.toMillis(familyLifetime)}
        AND NOT EXISTS (SELECT 1 FROM tollgate_auth_refresh_tokens WHERE family_id = f.id)))`,
  statements: (sql, now) => [
    statement(sql`UPDATE tollgate_auth_families SET revoked_at = ${now} WHERE revoked_at IS NULL`),
    statement(sql`DELETE FROM tollgate_auth_refresh_tokens`)
  ],
  notice: (n) => `${n} sign-ins end: people sign in again`
}
