/**
 * The device flow (RFC 8628): an application without a browser shows its person a short code, the person types it on a page of ours in
 * any browser and decides, and the application, which asks again and again meanwhile, gets its tokens, once. Codes are stored by their
 * hashes.
 *
 * Where the specification is silent:
 * - Only a client that is registered with `device` may begin it: else anybody could show a person a code in the name of an application
 *   that never does.
 * - Unused codes are deleted ten minutes after they expire, used ones an hour after. How many there are, the rate limit of an address bounds.
 * - Both codes are good for ten minutes. Who asks more often than the answer allows waits five seconds longer from then on (`slow_down`).
 * - A user code is eight consonants, so that it is no word; case, spaces and dashes do not matter. Whether there is one that was typed
 *   is told only to who has signed in, as often as `authorize` of the rate limits allows.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect } from "effect"
import { randomBytes, randomInt } from "node:crypto"
import type { Caller } from "../../kernel/Caller.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import type { Statement } from "../../books/ledger/Transaction.ts"
import type { WriterContract } from "../../books/ledger/Writer.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/Ending.ts"
import { fromRow, toRow } from "../credentials/Scope.ts"
import type { Grant } from "../credentials/Scope.ts"

/** How long the codes are good for. */
export const lifetime = Duration.minutes(10)
/** How long a used code is kept after it has expired, to recognize a copy. */
const usedRetention = Duration.toMillis(Duration.hours(1))
/** How long an unused code is kept after it has expired, to answer its application `expired_token`. */
const unusedRetention = Duration.toMillis(Duration.minutes(10))
/** How long an application waits between two questions at first, and how much longer after each that came too soon. */
export const pause = Duration.seconds(5)
/** A question that comes this much too soon, by the way through the network, is in time. */
const tolerance = 500

const letters = "BCDFGHJKLMNPQRSTVWXZ"
const userCodeLength = 8

/** What an application that begins gets: `device_code` to ask with, `user_code` to show. */
export interface DeviceCodes {
  readonly device_code: string
  readonly user_code: string
}

/** A device that waits for the decision of the person who types its code. */
export interface Waiting {
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

export const make = (sql: SqlClient, writer: WriterContract, secret: DeploymentSecretContract) => {
  const begin = (client_id: string, grant: Grant): Effect.Effect<DeviceCodes, BooksUnavailable> =>
    Effect.gen(function* () {
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
      const forgotten = sql`DELETE FROM tollgate_auth_device_codes
        WHERE expires_at < ${now - usedRetention} OR expires_at < ${now - unusedRetention} AND used_at IS NULL`
      const begun = sql`INSERT INTO tollgate_auth_device_codes ${sql.insert(row)} ON CONFLICT DO NOTHING RETURNING hash`
      // Of 25 thousand million user codes, another device may have the same.
      return (yield* Statements.tryWrite(writer, statement(forgotten), statement(begun, 1)))
        ? codes
        : yield* begin(client_id, grant)
    })

  /** Who waits with this user code, undecided and in time. */
  const waiting = Effect.fnUntraced(function* (user_code: string) {
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* Effect.orDie(
      sql<{ client_id: string; scope: string }>`SELECT client_id, scope FROM tollgate_auth_device_codes
        WHERE user_code_hash = ${userCodeHash(user_code)} AND decision IS NULL AND expires_at > ${now}`
    )
    return row === undefined ? undefined : ({ client_id: row.client_id, grant: fromRow(row.scope) } satisfies Waiting)
  })

  /** Answers whether a device still waited for it. */
  const decide = Effect.fnUntraced(function* (
    user_code: string,
    { account_id, tenant_id }: Pick<Caller, "account_id" | "tenant_id">,
    decision: "allow" | "deny"
  ) {
    const now = yield* Clock.currentTimeMillis
    const decided = sql`UPDATE tollgate_auth_device_codes
      SET decision = ${decision}, account_id = ${account_id}, tenant_id = ${tenant_id}
      WHERE user_code_hash = ${userCodeHash(user_code)} AND decision IS NULL AND expires_at > ${now} RETURNING hash`
    return yield* Statements.tryWrite(writer, statement(decided, 1))
  })

  const find = (device_code: string): Effect.Effect<DeviceRow | undefined> =>
    sql<DeviceRow>`SELECT hash, client_id, scope, expires_at, pause_ms, polled_at, decision, account_id, tenant_id, used_at, family_id
      FROM tollgate_auth_device_codes WHERE hash = ${secret.hash("device_code", device_code)}`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row)
    )

  /** Notes that an undecided device has asked. Answers whether it asked too soon. */
  const poll = Effect.fnUntraced(function* ({ hash, pause_ms, polled_at }: DeviceRow) {
    const now = yield* Clock.currentTimeMillis
    const soon = polled_at !== null && now - polled_at < pause_ms - tolerance
    const next = soon ? pause_ms + Duration.toMillis(pause) : pause_ms
    const noted = sql`UPDATE tollgate_auth_device_codes SET polled_at = ${now}, pause_ms = ${next} WHERE hash = ${hash}`
    yield* Statements.write(writer, statement(noted))
    return soon
  })

  /** For the transaction that the code is good for: refuses it if the code was used. `family` names the sign-in that it gave. */
  const spend = ({ hash }: DeviceRow, family: string, now: number): Statement =>
    statement(
      sql`UPDATE tollgate_auth_device_codes SET used_at = ${now}, family_id = ${family}
        WHERE hash = ${hash} AND used_at IS NULL RETURNING hash`,
      1
    )

  const userCodeHash = (user_code: string): string =>
    secret.hash("user_code", user_code.toUpperCase().replaceAll(/[^A-Z]/g, ""))

  return { begin, waiting, decide, find, poll, spend }
}

const newUserCode = (): string =>
  Array.from({ length: userCodeLength }, () => letters[randomInt(letters.length)]).join("")

/** As a person reads it: `BCDF-GHJK`. */
export const shownUserCode = (user_code: string): string => {
  const bare = user_code
    .toUpperCase()
    .replaceAll(/[^A-Z]/g, "")
    .slice(0, userCodeLength)
  return bare.length <= 4 ? bare : `${bare.slice(0, 4)}-${bare.slice(4)}`
}

/** Under another secret no code is known any more. */
export const devicesEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_auth_device_codes WHERE used_at IS NULL AND expires_at > ${now}`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_auth_device_codes`)],
  notice: (n) => `${n} codes of devices end`
}
