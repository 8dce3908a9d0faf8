/** Creates, lists and revokes management keys, and finds a key's holder. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import * as Ids from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { day } from "../../kernel/Moment.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import * as Audit from "./Audit.ts"
import type { CreatedManagementKey, ManagementKey, NewManagementKey, Scope } from "./ManagementKey.ts"
import type { Operator, SignedInOperator } from "./Operator.ts"

/** Times are in Unix milliseconds. */
export interface ManagementKeysContract {
  readonly create: (
    by: Operator,
    key: NewManagementKey
  ) => Effect.Effect<CreatedManagementKey, InvalidRequest | BooksUnavailable>
  /** Lists up to 200 active keys, newest first. */
  readonly list: Effect.Effect<ReadonlyArray<ManagementKey>>
  /** Revokes a key immediately. Returns `false` if no active key has this id. */
  readonly end: (by: Operator, id: string) => Effect.Effect<boolean, BooksUnavailable>
  /** Returns the holder of an active key and its scopes, or `undefined` for any other string. */
  readonly holderOf: (
    key: string
  ) => Effect.Effect<{ readonly operator: SignedInOperator; readonly scopes: ReadonlyArray<Scope> } | undefined>
  /** Returns whether the string has the form of a management key. */
  readonly isOne: (text: string) => boolean
}

const lifetimeMax = 2 * 366 * day
const listMax = 200
/** The minimum interval between a key's recorded uses, in milliseconds. */
const usedEvery = 60_000

export class ManagementKeys extends Context.Tag("tollgate/operator/ManagementKeys")<
  ManagementKeys,
  ManagementKeysContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(ManagementKeys, make))
}

interface Row extends Omit<ManagementKey, "scopes"> {
  /** The key's scopes, separated by spaces. */
  readonly scopes: string
}

interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
  readonly prefix: string
}

const make = Effect.gen(function* () {
  const [sql, writer, secret] = [yield* SqlClient, yield* Writer, yield* DeploymentSecret]
  const prefix = `${(yield* ServiceInfo).key_prefix}-admin-`
  const isOne = (text: string) => text.startsWith(prefix) && /^[0-9a-f]{64}$/.test(text.slice(prefix.length))
  const parts: Parts = { sql, writer, secret, prefix }
  return { create: creating(parts), list: listing(parts), end: ending(parts), holderOf: holding(parts, isOne), isOne }
})

const columns = (sql: SqlClient) =>
  sql.literal("id, name, key_prefix, scopes, created_by, created_at, expires_at, last_used_at")

const keyIn = (row: Row): ManagementKey => ({ ...row, scopes: row.scopes.split(" ") as ReadonlyArray<Scope> })

const creating = ({ prefix, secret, sql, writer }: Parts): ManagementKeysContract["create"] =>
  Effect.fn("ManagementKeys.create")(function* (by, { expires_at, name, scopes }) {
    const now = yield* Clock.currentTimeMillis
    if (expires_at <= now || expires_at > now + lifetimeMax)
      return yield* InvalidRequest.of("expires_at", "must be in the future and at most two years from now")
    const management_key = `${prefix}${randomBytes(32).toString("hex")}`
    const row: Row = {
      id: Ids.at("opk", now),
      name,
      key_prefix: management_key.slice(0, prefix.length + 4),
      scopes: scopes.join(" "),
      created_by: by.name,
      created_at: now,
      expires_at,
      last_used_at: null
    }
    const stored = { ...row, key_hash: secret.hash("management_key", management_key), ended_at: null }
    const details = { name, scopes: row.scopes, key_prefix: row.key_prefix }
    yield* Statements.write(
      writer,
      statement(sql`INSERT INTO tollgate_operator_keys ${sql.insert(stored)}`),
      Audit.entry(by, { action: "management_key.create", subject: row.id, details }, now)
    )
    return { ...keyIn(row), management_key }
  })

const listing = ({ sql }: Parts): ManagementKeysContract["list"] =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* sql<Row>`SELECT ${columns(sql)} FROM tollgate_operator_keys
      WHERE ended_at IS NULL AND expires_at > ${now} ORDER BY id DESC LIMIT ${listMax}`
    return rows.map(keyIn)
  }).pipe(Effect.orDie)

const ending = ({ sql, writer }: Parts): ManagementKeysContract["end"] =>
  Effect.fn("ManagementKeys.end")(function* (by, id) {
    const now = yield* Clock.currentTimeMillis
    const ended = sql`UPDATE tollgate_operator_keys SET ended_at = ${now}
      WHERE id = ${id} AND ended_at IS NULL AND expires_at > ${now} RETURNING id`
    return yield* Statements.tryWrite(
      writer,
      statement(ended, 1),
      Audit.entry(by, { action: "management_key.end", subject: id }, now)
    )
  })

/** Looks up the keyed hash in an index, so that the comparison's timing reveals nothing about the key. */
const holding = (
  { secret, sql, writer }: Parts,
  isOne: (text: string) => boolean
): ManagementKeysContract["holderOf"] =>
  Effect.fn("ManagementKeys.holderOf")(function* (key) {
    if (!isOne(key)) return undefined
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* Effect.orDie(
      sql<Row>`SELECT ${columns(sql)} FROM tollgate_operator_keys
        WHERE key_hash = ${secret.hash("management_key", key)} AND ended_at IS NULL AND expires_at > ${now}`
    )
    if (row === undefined) return undefined
    if (row.last_used_at === null || row.last_used_at <= now - usedEvery) {
      const used = statement(sql`UPDATE tollgate_operator_keys SET last_used_at = ${now} WHERE id = ${row.id}`)
      // Ignores a failed write, so that read requests succeed while the books are not writable.
      yield* Effect.ignore(Statements.write(writer, used))
    }
    const { scopes } = keyIn(row)
    const operator: SignedInOperator = {
      name: `${row.name} (${row.key_prefix})`,
      via: "token",
      session_id: row.id,
      signed_in_at: row.created_at,
      expires_at: row.expires_at,
      scopes
    }
    return { operator, scopes }
  })

/** Invalidates all management keys, because a new deployment secret cannot verify them. */
export const managementKeysEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_operator_keys WHERE ended_at IS NULL AND expires_at > ${now}`,
  statements: (sql, now) => [
    statement(sql`UPDATE tollgate_operator_keys SET ended_at = ${now} WHERE ended_at IS NULL`)
  ],
  notice: (n) => `${n} management keys become invalid; operators must create new ones`
}
