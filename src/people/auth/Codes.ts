/**
 * Authorization codes. An application receives a code when the user consents, and can exchange it once, within a minute. The database stores codes as
 * hashes.
 *
 * Where the specification is silent:
 * - The service stores up to 100 authorization codes per account from the last day, including used codes. A further code voids the oldest.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect } from "effect"
import { randomBytes } from "node:crypto"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { AuthorizationContract } from "./Authorization.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import { toRow } from "../credentials/Scope.ts"

const lifetime = Duration.toMillis(Duration.minutes(1))
/** How long an expired code's row is retained, to detect a replay. */
const retention = Duration.toMillis(Duration.days(1))
/** The maximum number of codes retained per account, including used codes. */
const codesMax = 100

export interface Code {
  readonly hash: string
  readonly client_id: string
  readonly redirect_uri: string
  readonly account_id: AccountId
  readonly tenant_id: TenantId
  readonly challenge: string
  readonly scope: string
  readonly nonce: string | null
  /** The Unix time of the user's sign-in, in milliseconds. Null if unknown. */
  readonly auth_time: number | null
  readonly expires_at: number
  readonly used_at: number | null
}

export const make = (sql: SqlClient, writer: WriterContract, secret: DeploymentSecretContract) => {
  const issue: AuthorizationContract["consent"] = Effect.fn("Authorization.consent")(function* (person, request) {
    const { account_id, auth_time = null, tenant_id } = person
    const now = yield* Clock.currentTimeMillis
    const code = `oc_${randomBytes(32).toString("hex")}`
    const row: Omit<Code, "used_at"> = {
      hash: secret.hash("authorization_code", code),
      client_id: request.client.client_id,
      redirect_uri: request.redirect_uri,
      account_id,
      tenant_id,
      challenge: request.challenge,
      scope: toRow(request.grant),
      nonce: request.nonce ?? null,
      auth_time,
      expires_at: now + lifetime
    }
    const surplus = sql`SELECT hash FROM tollgate_auth_codes WHERE account_id = ${account_id}
      ORDER BY expires_at DESC LIMIT 1000 OFFSET ${sql.literal(String(codesMax - 1))}`
    yield* Statements.write(
      writer,
      statement(sql`DELETE FROM tollgate_auth_codes WHERE expires_at < ${now - retention}`),
      statement(sql`DELETE FROM tollgate_auth_codes WHERE hash IN (${surplus})`),
      statement(sql`INSERT INTO tollgate_auth_codes ${sql.insert(row)}`)
    )
    return code
  })

  const find = (code: string): Effect.Effect<Code | undefined> =>
    sql<Code>`SELECT hash, client_id, redirect_uri, account_id, tenant_id, challenge, scope, nonce, auth_time,
        expires_at, used_at
      FROM tollgate_auth_codes WHERE hash = ${secret.hash("authorization_code", code)}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row)
    )

  /** Marks a code as used by the sign-in `family`. Fails the transaction if the code was already used. */
  const spend = ({ hash }: Code, family: string | null, now: number): Statement =>
    statement(
      sql`UPDATE tollgate_auth_codes SET used_at = ${now}, family_id = ${family}
        WHERE hash = ${hash} AND used_at IS NULL RETURNING hash`,
      1
    )

  /** Marks a code as used without a sign-in. Returns `false` if it was already used. */
  const discard = (code: Code) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => Statements.tryWrite(writer, spend(code, null, now)))

  /** Finds the sign-in that a code opened. Returns `null` if the code opened none. */
  const familyOf = ({ hash }: Code): Effect.Effect<string | null> =>
    sql<{ family_id: string | null }>`SELECT family_id FROM tollgate_auth_codes WHERE hash = ${hash}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row?.family_id ?? null)
    )

  return { issue, find, spend, discard, familyOf }
}

export type Codes = ReturnType<typeof make>

/** Invalidates authorization codes that were issued under the old secret. */
export const codesEnd: Ending = {
  count: (sql, now) => sql`SELECT count(*) AS n FROM tollgate_auth_codes WHERE used_at IS NULL AND expires_at > ${now}`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_auth_codes`)],
  notice: (n) => `${n} authorization codes become invalid`
}
