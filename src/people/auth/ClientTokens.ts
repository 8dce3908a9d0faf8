/** Tokens for contact forms on websites. Each token admits one message within 30 minutes. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Duration, Effect } from "effect"
import { randomBytes } from "node:crypto"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"

export const tokenLifetime = Duration.minutes(30)

export const make = (sql: SqlClient, secret: DeploymentSecretContract) => {
  const hashOf = (token: string) => secret.hash("client_token", token)
  return {
    /** Creates a token for a client, with the statements that store it and delete expired tokens. */
    issue: (client_id: string, now: number) => {
      const token = `ct_${randomBytes(32).toString("hex")}`
      const expires_at = now + Duration.toMillis(tokenLifetime)
      const statements: ReadonlyArray<Statement> = [
        statement(sql`DELETE FROM tollgate_auth_client_tokens WHERE expires_at < ${now}`),
        statement(sql`INSERT INTO tollgate_auth_client_tokens (hash, client_id, expires_at)
          VALUES (${hashOf(token)}, ${client_id}, ${expires_at})`)
      ]
      return { token, statements }
    },

    /** Finds the website that a token belongs to. Returns `undefined` if the token is unknown, used or expired. */
    find: (token: string, now: number) => {
      const hash = hashOf(token)
      return sql<{ client_id: string }>`SELECT client_id FROM tollgate_auth_client_tokens
        WHERE hash = ${hash} AND used_at IS NULL AND expires_at > ${now}`.pipe(
        Effect.orDie,
        Effect.map(([row]) => row && { hash, client_id: row.client_id })
      )
    },

    /** Marks a token as used. Fails the transaction if it was already used. */
    spend: (hash: string, now: number): Statement =>
      statement(
        sql`UPDATE tollgate_auth_client_tokens SET used_at = ${now} WHERE hash = ${hash} AND used_at IS NULL RETURNING hash`,
        1
      )
  }
}

/** Invalidates client tokens that were issued under the old secret. */
export const clientTokensEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_auth_client_tokens WHERE used_at IS NULL AND expires_at > ${now}`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_auth_client_tokens`)],
  notice: (n) => `${n} client tokens for contact forms become invalid`
}
