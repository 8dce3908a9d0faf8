/**
 * The device flow (RFC 8628). An application without a browser shows a short user code and polls. In any browser, the user enters the code on a
 * page of this service and allows or denies access. The next poll then returns the tokens, but only once. The database stores codes as hashes.
 *
 * Where the specification is silent:
 * - Only clients registered with `device` may start the device flow. Otherwise, an attacker could obtain a code in the name of an application that
 *   never uses this flow, and show it to a user.
 * - Both codes expire after ten minutes. Each poll that arrives too early increases the interval by five seconds (`slow_down`).
 * - A user code consists of eight consonants, so that it spells no word. Case, spaces and dashes do not matter. Only signed-in users can find out
 *   whether a code exists, and only within the rate limit `authorize`.
 * - Unused codes are deleted ten minutes after they expire, and used codes after an hour. The per-address rate limit `authorize` bounds their number.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect } from "effect"
import { randomBytes, randomInt } from "node:crypto"
import type { Caller } from "../../kernel/Caller.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import { fromRow, toRow } from "../credentials/Scope.ts"
import type { Grant } from "../credentials/Scope.ts"

/** The lifetime of both codes. */
export const lifetime = Duration.minutes(10)
/** How long a used code is retained after it expires, to detect a replay. */
const usedRetention = Duration.toMillis(Duration.hours(1))
/** How long an unused code is retained after it expires. During this time, polls return `expired_token`. */
const unusedRetention = Duration.toMillis(Duration.minutes(10))
/** The initial poll interval, and the increment after each early poll. */
export const pause = Duration.seconds(5)
/** How early a poll may arrive because of network jitter, in milliseconds. */
const tolerance = 500

const letters = "BCDFGHJKLMNPQRSTVWXZ"
const userCodeLength = 8

/** The codes of a device. The application polls with `device_code` and shows `user_code`. */
export interface DeviceCodes {
  readonly device_code: string
  readonly user_code: string
}

export interface WaitingDevice {
  readonly client_id: string
  readonly grant: Grant
}

export interface DeviceRow {
  readonly hash: string
  readonly client_id: string
  readonly scope: string
  readonly expires_at: number
  readonly pause_ms: number
  readonly polled_at: number | null
  readonly decision: "allow" | "deny" | null
  readonly account_id: AccountId | null
  readonly tenant_id: TenantId | null
  readonly used_at: number | null
  readonly family_id: string | null
}

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
}

export const make = (sql: SqlClient, writer: WriterContract, secret: DeploymentSecretContract) => {
  const dependencies: Dependencies = { sql, writer, secret }
  return {
    begin: (client_id: string, grant: Grant) => begin(dependencies, client_id, grant),
    /** Finds the undecided, unexpired device that is waiting for this user code. */
    waiting: (user_code: string) => findWaiting(dependencies, user_code),
    /** Records a decision. Returns `false` if no device is waiting for this code. */
    decide: (user_code: string, person: Pick<Caller, "account_id" | "tenant_id">, decision: "allow" | "deny") =>
      decide(dependencies, user_code, person, decision),
    find: (device_code: string) => find(dependencies, device_code),
    /** Records a poll by an undecided device. Returns whether the poll arrived too early. */
    poll: (row: DeviceRow) => poll(dependencies, row),
    /** Marks a code as used by the sign-in `family`. Fails the transaction if the code was already used. */
    spend: ({ hash }: DeviceRow, family: string, now: number): Statement =>
      statement(
        sql`UPDATE tollgate_auth_device_codes SET used_at = ${now}, family_id = ${family}
          WHERE hash = ${hash} AND used_at IS NULL RETURNING hash`,
        1
      )
  }
}

export type Devices = ReturnType<typeof make>

const begin = ({ secret, sql, writer }: Dependencies, client_id: string, grant: Grant) => {
  const attempt: Effect.Effect<DeviceCodes, BooksUnavailable> = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const codes = { device_code: `dc_${randomBytes(32).toString("hex")}`, user_code: newUserCode() }
    const row = {
      hash: secret.hash("device_code", codes.device_code),
      user_code_hash: secret.hash("user_code", codes.user_code),
      client_id,
      scope: toRow(grant),
      expires_at: now + Duration.toMillis(lifetime),
      pause_ms: Duration.toMillis(pause)
    }
    const expired = sql`DELETE FROM tollgate_auth_device_codes
      WHERE expires_at < ${now - usedRetention} OR expires_at < ${now - unusedRetention} AND used_at IS NULL`
    const begun = sql`INSERT INTO tollgate_auth_device_codes ${sql.insert(row)} ON CONFLICT DO NOTHING RETURNING hash`
    // There are about 25 billion user codes, so this one may be taken. In that case, retries with another code.
    return (yield* Statements.tryWrite(writer, statement(expired), statement(begun, 1))) ? codes : yield* attempt
  })
  return attempt
}

const findWaiting = Effect.fnUntraced(function* ({ secret, sql }: Dependencies, user_code: string) {
  const now = yield* Clock.currentTimeMillis
  const [row] = yield* Effect.orDie(
    sql<{ client_id: string; scope: string }>`SELECT client_id, scope FROM tollgate_auth_device_codes
      WHERE user_code_hash = ${userCodeHash(secret, user_code)} AND decision IS NULL AND expires_at > ${now}`
  )
  return row === undefined
    ? undefined
    : ({ client_id: row.client_id, grant: fromRow(row.scope) } satisfies WaitingDevice)
})

const decide = Effect.fnUntraced(function* (
  { secret, sql, writer }: Dependencies,
  user_code: string,
  { account_id, tenant_id }: Pick<Caller, "account_id" | "tenant_id">,
  decision: "allow" | "deny"
) {
  const now = yield* Clock.currentTimeMillis
  const decided = sql`UPDATE tollgate_auth_device_codes
    SET decision = ${decision}, account_id = ${account_id}, tenant_id = ${tenant_id}
    WHERE user_code_hash = ${userCodeHash(secret, user_code)} AND decision IS NULL AND expires_at > ${now} RETURNING hash`
  return yield* Statements.tryWrite(writer, statement(decided, 1))
})

const find = ({ secret, sql }: Dependencies, device_code: string): Effect.Effect<DeviceRow | undefined> =>
  sql<DeviceRow>`SELECT hash, client_id, scope, expires_at, pause_ms, polled_at, decision, account_id, tenant_id, used_at, family_id
    FROM tollgate_auth_device_codes WHERE hash = ${secret.hash("device_code", device_code)}`.pipe(
    Effect.orDie,
    Effect.map(([row]) => row)
  )

const poll = Effect.fnUntraced(function* ({ sql, writer }: Dependencies, { hash, pause_ms, polled_at }: DeviceRow) {
  const now = yield* Clock.currentTimeMillis
  const soon = polled_at !== null && now - polled_at < pause_ms - tolerance
  const next = soon ? pause_ms + Duration.toMillis(pause) : pause_ms
  const noted = sql`UPDATE tollgate_auth_device_codes SET polled_at = ${now}, pause_ms = ${next} WHERE hash = ${hash}`
  yield* Statements.write(writer, statement(noted))
  return soon
})

// ---- user codes ---------------------------------------------------------------------------------------------------------

const newUserCode = (): string =>
  Array.from({ length: userCodeLength }, () => letters[randomInt(letters.length)]).join("")

const bareUserCode = (user_code: string): string => user_code.toUpperCase().replaceAll(/[^A-Z]/g, "")

const userCodeHash = (secret: DeploymentSecretContract, user_code: string): string =>
  secret.hash("user_code", bareUserCode(user_code))

/** Formats a user code for users: `BCDF-GHJK`. */
export const shownUserCode = (user_code: string): string => {
  const bare = bareUserCode(user_code).slice(0, userCodeLength)
  return bare.length <= 4 ? bare : `${bare.slice(0, 4)}-${bare.slice(4)}`
}

/** Invalidates device codes that were issued under the old secret. */
export const devicesEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_auth_device_codes WHERE used_at IS NULL AND expires_at > ${now}`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_auth_device_codes`)],
  notice: (n) => `${n} device codes become invalid`
}
