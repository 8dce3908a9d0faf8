/**
 * Sign-ins and their tokens. A refresh token works once and is then replaced. A second use means that the token was copied, so it ends the
 * sign-in and invalidates all its tokens.
 *
 * Where the specification is silent:
 * - If two concurrent refreshes use the same token, the second counts as theft and the sign-in ends.
 * - An account may have 1,000 sign-ins. A further sign-in ends the oldest, along with the API keys that it created. A sign-in older than 91 days does
 *   not count. The account's next sign-in deletes it unless a key depends on it.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { fromRow, scopeText, toRow } from "../credentials/Scope.ts"
import type { Grant } from "../credentials/Scope.ts"
import * as Families from "../credentials/Families.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { hasKeys } from "../tenants/ApplicationRow.ts"
import { Belonging } from "../tenants/Belonging.ts"
import type { BelongingContract } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import type { TenantsContract } from "../tenants/Tenants.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import { NotAMember } from "../tenants/Problems.ts"
import { InvalidGrant } from "./Problems.ts"
import * as RefreshTokens from "./RefreshTokens.ts"
import { familyLifetime } from "./RefreshTokens.ts"
import { accessLifetime, Tokens } from "./Tokens.ts"
import type { TokensContract } from "./Tokens.ts"

export interface TokenPair {
  readonly access_token: string
  readonly token_type: "Bearer"
  /** The lifetime of the access token in seconds. */
  readonly expires_in: number
  readonly refresh_token: string
  /** An application's scope. Absent for a user's own sign-in. */
  readonly scope?: string
}

export interface SignIn {
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly client_id: string
  /** `true` for an application's sign-in. Calls of this sign-in charge the team's pool first. */
  readonly team_first: boolean
  readonly grant: Grant
}

/** A sign-in that has not ended. */
export interface OpenSignIn {
  readonly id: string
  readonly client_id: string
  /** Whether an application holds the sign-in, through the code flow or the device flow. */
  readonly application: boolean
  readonly signed_in_at: number
}

/** A sign-in's id is its token family's id. */
export interface SessionsContract {
  readonly open: (signIn: SignIn) => Effect.Effect<TokenPair, BooksUnavailable>
  /** Opens a sign-in in the same transaction as `beside`. `beside` receives the sign-in's id. Returns `undefined` if `beside` failed. */
  readonly openBeside: (
    signIn: SignIn,
    beside: (family: string) => Statement
  ) => Effect.Effect<TokenPair | undefined, BooksUnavailable>
  /** Opens a sign-in without a refresh token and returns its id. The caller must limit its lifetime. */
  readonly begin: (signIn: SignIn) => Effect.Effect<string, BooksUnavailable>
  /** Ends one of the account's sign-ins. The sign-in's access tokens become invalid immediately in this process, and within a minute in others. */
  readonly end: (account: AccountId, family: string) => Effect.Effect<void, BooksUnavailable>
  /** Lists up to 100 of the account's sign-ins that can still be refreshed, newest first. */
  readonly ofAccount: (account: AccountId) => Effect.Effect<ReadonlyArray<OpenSignIn>>
  /**
   * Ends all of an account's sign-ins, open codes and console links in the same transaction as `beside`. Passes the number of open
   * sign-ins to `beside` and returns it.
   */
  readonly endAll: (
    account: AccountId,
    beside: (open: number) => ReadonlyArray<Statement>
  ) => Effect.Effect<number, BooksUnavailable>
  /** Returns the statements that end all of an account's sign-ins, open codes and console links, for another module's transaction. */
  readonly endingAll: (account: AccountId) => ReadonlyArray<Statement>
  readonly isLive: (family: string) => Effect.Effect<boolean>
  /** Exchanges a refresh token for a new pair. `tenant_id` switches to another of the account's tenants. */
  readonly refresh: (request: {
    readonly refresh_token: string
    readonly client_id: string
    readonly tenant_id: TenantId | undefined
  }) => Effect.Effect<TokenPair, InvalidGrant | NotAMember | BooksUnavailable>
  /** Ends the sign-in of a refresh token. Does nothing if the token is unknown or belongs to a client other than `client_id`. */
  readonly revoke: (token: string, client_id?: string) => Effect.Effect<void, BooksUnavailable>
}

/** The maximum number of sign-ins per account, apart from those that hold its API keys. */
const openMax = 1_000

/** The age at which a sign-in has no valid token: its last refresh token and that token's access tokens have expired. */
const idleAfter = Duration.sum(familyLifetime, Duration.days(1))

export class Sessions extends Context.Tag("tollgate/auth/Sessions")<Sessions, SessionsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Sessions, make))
}

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly belonging: BelongingContract
  readonly tokens: TokensContract
  readonly tenants: TenantsContract
  readonly refreshTokens: RefreshTokens.RefreshTokens
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const dependencies: Dependencies = {
    sql,
    writer: yield* Writer,
    belonging: yield* Belonging,
    tokens: yield* Tokens,
    tenants: yield* Tenants,
    refreshTokens: RefreshTokens.make(sql, yield* DeploymentSecret)
  }
  const openBeside = makeOpenBeside(dependencies)
  const end = makeEnd(dependencies)
  return {
    // Without a statement in `beside`, nothing can fail.
    open: (signIn) =>
      Effect.map(
        openBeside(signIn, () => []),
        (pair) => pair!
      ),
    openBeside: (signIn, beside) => openBeside(signIn, (family) => [beside(family)]),
    begin: makeBegin(dependencies),
    end,
    ofAccount: makeList(sql),
    endAll: makeEndAll(dependencies),
    endingAll: (account) => Families.endingAll(sql, account),
    isLive: (family) =>
      Effect.map(
        Effect.orDie(sql`SELECT 1 FROM tollgate_auth_families WHERE id = ${family} AND revoked_at IS NULL`),
        (rows) => rows.length > 0
      ),
    refresh: makeRefresh(dependencies, end),
    revoke: makeRevoke(dependencies, end)
  } satisfies SessionsContract
})

const ofAccount = (sql: SqlClient, account: AccountId): Fragment => sql`account_id = ${account} AND revoked_at IS NULL`

// ---- opening ------------------------------------------------------------------------------------------------------------

const insertStatement = (sql: SqlClient, signIn: SignIn, id: string, signed_in_at: number): Statement => {
  const { account_id, client_id, grant, team_first } = signIn
  const row = { id, account_id, client_id, team_first: team_first ? 1 : 0, scope: toRow(grant), signed_in_at }
  return statement(sql`INSERT INTO tollgate_auth_families ${sql.insert({ ...row, revoked_at: null })}`)
}

/** Selects the account's sign-ins that must end before another may begin. A sign-in that holds API keys is neither counted nor ended. */
const surplus = (sql: SqlClient, account: AccountId, now: number): Fragment => {
  const counted = sql`${ofAccount(sql, account)} AND signed_in_at > ${now - Duration.toMillis(idleAfter)}
    AND NOT ${hasKeys(sql, "tollgate_auth_families.id")}`
  return sql`${counted} AND id <= (SELECT id FROM tollgate_auth_families WHERE ${counted}
    ORDER BY id DESC LIMIT 1 OFFSET ${sql.literal(String(openMax - 1))})`
}

/** Selects the account's old sign-ins without valid tokens or API keys. */
const idle = (sql: SqlClient, account: AccountId, now: number): Fragment =>
  sql`${ofAccount(sql, account)} AND signed_in_at <= ${now - Duration.toMillis(idleAfter)}
    AND NOT ${hasKeys(sql, "tollgate_auth_families.id")}`

/** Writes a new sign-in and ends the sign-ins that it displaces. Returns whether the statements in `beside` succeeded. */
const write = Effect.fnUntraced(function* (
  { belonging, sql, writer }: Dependencies,
  signIn: SignIn,
  family: string,
  now: number,
  beside: ReadonlyArray<Statement>
) {
  const { account_id } = signIn
  const oldest = surplus(sql, account_id, now)
  const isFull = (yield* Effect.orDie(sql`SELECT 1 FROM tollgate_auth_families WHERE ${oldest} LIMIT 1`)).length > 0
  const written = Statements.tryWrite(
    writer,
    ...beside,
    ...Families.ending(sql, idle(sql, account_id, now)),
    ...Families.ending(sql, oldest),
    insertStatement(sql, signIn, family, now)
  )
  return yield* isFull ? afterCommit(written, belonging.changed(account_id)) : written
})

const makeBegin = (dependencies: Dependencies): SessionsContract["begin"] =>
  Effect.fn("Sessions.begin")(function* (signIn) {
    const now = yield* Clock.currentTimeMillis
    const family = Ids.at("fam", now)
    yield* write(dependencies, signIn, family, now, [])
    return family
  })

const makeOpenBeside = (dependencies: Dependencies) =>
  Effect.fn("Sessions.openBeside")(function* (
    signIn: SignIn,
    beside: (family: string) => ReadonlyArray<Statement>
  ): Effect.fn.Return<TokenPair | undefined, BooksUnavailable> {
    const now = yield* Clock.currentTimeMillis
    const family = Ids.at("fam", now)
    const { refreshTokens, tokens } = dependencies
    const { stored, token } = refreshTokens.issue(family, signIn.tenant_id, now)
    const statements = [...beside(family), stored, refreshTokens.sweep(now)]
    const opened = yield* write(dependencies, signIn, family, now, statements)
    return opened ? yield* pairOf(tokens, signIn, family, token) : undefined
  })

const pairOf = (tokens: TokensContract, signIn: SignIn, family: string, refresh_token: string) =>
  Effect.map(tokens.sign({ ...signIn, family }), (access_token): TokenPair => ({
    access_token,
    token_type: "Bearer",
    expires_in: Duration.toSeconds(accessLifetime),
    refresh_token,
    ...(signIn.team_first && { scope: scopeText(signIn.grant) })
  }))

// ---- refreshing ---------------------------------------------------------------------------------------------------------

const makeRefresh = (
  { refreshTokens, tenants, tokens, writer }: Dependencies,
  end: SessionsContract["end"]
): SessionsContract["refresh"] =>
  Effect.fn("Sessions.refresh")(function* ({ client_id, refresh_token, tenant_id: asked }) {
    const now = yield* Clock.currentTimeMillis
    const found = yield* refreshTokens.find(refresh_token)
    if (found === undefined || found.client_id !== client_id) return yield* new InvalidGrant()
    const { account_id, family_id, scope, team_first } = found
    if (!found.current) {
      yield* end(account_id, family_id)
      return yield* new InvalidGrant()
    }
    if (found.expires_at <= now) return yield* new InvalidGrant()
    const tenant_id = asked ?? found.tenant_id
    if (!(yield* tenants.isActiveMember(account_id, tenant_id))) return yield* new NotAMember({ tenant_id })
    const { stored, token } = refreshTokens.replace(refresh_token, found, tenant_id, now)
    if (!(yield* Statements.tryWrite(writer, ...stored))) {
      // The second of two concurrent requests with the same token also counts as theft.
      yield* end(account_id, family_id)
      return yield* new InvalidGrant()
    }
    const signIn = { account_id, tenant_id, client_id, team_first: team_first === 1, grant: fromRow(scope) }
    return yield* pairOf(tokens, signIn, family_id, token)
  })

// ---- ending -------------------------------------------------------------------------------------------------------------

const makeEnd = ({ belonging, sql, writer }: Dependencies): SessionsContract["end"] =>
  Effect.fnUntraced(function* (account, family) {
    const ended = Statements.write(writer, ...Families.ending(sql, sql`id = ${family}`))
    yield* afterCommit(ended, belonging.changed(account))
  })

const makeEndAll = ({ belonging, sql, writer }: Dependencies): SessionsContract["endAll"] =>
  Effect.fn("Sessions.endAll")(function* (account, beside) {
    const all = ofAccount(sql, account)
    const [open] = yield* Effect.orDie(
      sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_auth_families WHERE ${all}`
    )
    const count = open?.n ?? 0
    const ended = Statements.write(writer, ...Families.endingAll(sql, account), ...beside(count))
    yield* afterCommit(ended, belonging.changed(account))
    return count
  })

const makeRevoke = ({ refreshTokens }: Dependencies, end: SessionsContract["end"]): SessionsContract["revoke"] =>
  Effect.fn("Sessions.revoke")(function* (token, client_id) {
    const found = yield* refreshTokens.find(token)
    if (found === undefined || (client_id !== undefined && found.client_id !== client_id)) return
    yield* end(found.account_id, found.family_id)
  })

const makeList = (sql: SqlClient): SessionsContract["ofAccount"] =>
  Effect.fn("Sessions.ofAccount")(function* (account) {
    const since = (yield* Clock.currentTimeMillis) - Duration.toMillis(familyLifetime)
    const rows = yield* sql<Omit<OpenSignIn, "application"> & { readonly team_first: number }>`
      SELECT id, client_id, team_first, signed_in_at FROM tollgate_auth_families
      WHERE ${ofAccount(sql, account)} AND signed_in_at > ${since} ORDER BY id DESC LIMIT 100`
    return rows.map(({ team_first, ...row }) => ({ ...row, application: team_first === 1 }))
  }, Effect.orDie)

/** Deletes all sign-ins when the secret changes, because that invalidates their refresh tokens. */
export const sessionsEnd: Ending = {
  // A browser's sign-in has no refresh token.
  count: (sql, now) => sql`SELECT count(*) AS n FROM tollgate_auth_families f WHERE revoked_at IS NULL
    AND (EXISTS (SELECT 1 FROM tollgate_auth_refresh_tokens WHERE family_id = f.id AND expires_at > ${now})
      OR (signed_in_at > ${now - Duration.toMillis(familyLifetime)}
        AND NOT EXISTS (SELECT 1 FROM tollgate_auth_refresh_tokens WHERE family_id = f.id)))`,
  statements: (sql) => [
    statement(sql`DELETE FROM tollgate_auth_families`),
    statement(sql`DELETE FROM tollgate_auth_refresh_tokens`)
  ],
  notice: (n) => `${n} sign-ins end; people must sign in again`
}
