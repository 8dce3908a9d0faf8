/**
 * Refresh tokens. Each sign-in's row contains the hash of its current token. A token contains its sign-in's id and a keyed hash, so the service
 * recognizes a used token without a row.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Duration, Effect } from "effect"
import { randomBytes, timingSafeEqual } from "node:crypto"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"

/** The refresh token lifetime, and the maximum sign-in lifetime. */
export const refreshLifetime = Duration.days(7)
export const familyLifetime = Duration.days(90)

/** The sign-in that a refresh token belongs to. */
export interface Refreshable {
  readonly family_id: string
  readonly account_id: AccountId
  readonly client_id: string
  readonly team_first: number
  readonly scope: string
  readonly signed_in_at: number
  readonly tenant_id: TenantId
  readonly expires_at: number
  /** `false` if the token has been used or replaced. */
  readonly current: boolean
}

interface Row extends Omit<Refreshable, "current"> {
  readonly hash: string
  readonly used_at: number | null
}

const macLength = 32

const expiryOf = (signedInAt: number, now: number): number =>
  Math.min(now + Duration.toMillis(refreshLifetime), signedInAt + Duration.toMillis(familyLifetime))

/** Creates and reads tokens. A token consists of `rt_`, its sign-in's id, random hex digits, and a keyed hash of these. */
const formatOf = (secret: DeploymentSecretContract) => {
  const hashOf = (token: string) => secret.hash("refresh_token", token)
  const macOf = (content: string) => hashOf(content).slice(0, macLength)
  return {
    hashOf,
    newToken: (family: string): string => {
      const content = `rt_${family}_${randomBytes(32).toString("hex")}`
      return content + macOf(content)
    },
    /** Returns the token's sign-in id, or `undefined` if the token is foreign or from an earlier version. */
    familyIn: (token: string): string | undefined => {
      const [, content, family, mac] = /^(rt_(\w+)_[0-9a-f]{64})([0-9a-f]{32})$/.exec(token) ?? []
      return content !== undefined && timingSafeEqual(Buffer.from(mac!), Buffer.from(macOf(content)))
        ? family
        : undefined
    }
  }
}

export const make = (sql: SqlClient, secret: DeploymentSecretContract) => {
  const { familyIn, hashOf, newToken } = formatOf(secret)

  const insertStatement = (
    row: Omit<Row, "used_at" | keyof Omit<Refreshable, "family_id" | "tenant_id" | "expires_at">>
  ) => statement(sql`INSERT INTO tollgate_auth_refresh_tokens ${sql.insert({ ...row, used_at: null })}`)

  /** Creates a sign-in's first token, with the statement that inserts it. */
  const issue = (family_id: string, tenant_id: TenantId, now: number) => {
    const token = newToken(family_id)
    return {
      token,
      stored: insertStatement({ hash: hashOf(token), family_id, tenant_id, expires_at: expiryOf(now, now) })
    }
  }

  const find = (token: string): Effect.Effect<Refreshable | undefined> => {
    const hash = hashOf(token)
    return sql<Row>`SELECT t.hash, t.family_id, t.tenant_id, t.expires_at, t.used_at,
        f.account_id, f.client_id, f.team_first, f.scope, f.signed_in_at
      FROM tollgate_auth_refresh_tokens t JOIN tollgate_auth_families f ON f.id = t.family_id AND f.revoked_at IS NULL
      WHERE t.hash = ${hash} OR t.family_id = ${familyIn(token) ?? ""}`.pipe(
      Effect.orDie,
      Effect.map((rows) => {
        const row = rows.find((one) => one.hash === hash) ?? rows[0]
        return row && { ...row, current: row.hash === hash && row.used_at === null }
      })
    )
  }

  /**
   * Creates the next token, with the statements that replace `token`. The statements fail the transaction if `token` was used or its sign-in has
   * ended.
   */
  const replace = (token: string, { family_id, signed_in_at }: Refreshable, tenant_id: TenantId, now: number) => {
    const next = newToken(family_id)
    const row = { hash: hashOf(next), family_id, tenant_id, expires_at: expiryOf(signed_in_at, now) }
    const usable = sql`hash = ${hashOf(token)} AND used_at IS NULL
      AND EXISTS (SELECT 1 FROM tollgate_auth_families WHERE id = ${family_id} AND revoked_at IS NULL)`
    // A token from an earlier version does not contain its sign-in, so its row is retained to detect reuse.
    const stored: ReadonlyArray<Statement> =
      familyIn(token) === undefined
        ? [
            statement(
              sql`UPDATE tollgate_auth_refresh_tokens SET used_at = ${now} WHERE ${usable} RETURNING family_id`,
              1
            ),
            insertStatement(row)
          ]
        : [
            statement(
              sql`UPDATE tollgate_auth_refresh_tokens
                SET hash = ${row.hash}, tenant_id = ${tenant_id}, expires_at = ${row.expires_at}
                WHERE ${usable} RETURNING family_id`,
              1
            )
          ]
    return { token: next, stored }
  }

  /** Deletes a few long-expired tokens. */
  const sweep = (now: number): Statement =>
    statement(sql`DELETE FROM tollgate_auth_refresh_tokens WHERE hash IN (SELECT hash FROM tollgate_auth_refresh_tokens
      WHERE expires_at < ${now - Duration.toMillis(familyLifetime)} ORDER BY expires_at LIMIT 20)`)

  return { issue, find, replace, sweep }
}

export type RefreshTokens = ReturnType<typeof make>
