/**
 * Records the ids of objects that a vendor stores for callers (`keeps_responses`). An id belongs to the tenant and account that received it. The
 * transaction that settles a call records its response's ids before the end of the response is sent. A request with an unknown id is rejected.
 *
 * Where the specification is silent:
 * - In each tenant, an account may use the last 10,000 ids that it received, each for 30 days. An id that is received again counts as new.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Duration, Effect, Schema } from "effect"
import { createHash } from "node:crypto"
import type { Actor } from "../../kernel/Caller.ts"
import { Problem } from "../../kernel/Problem.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"

export interface Named {
  readonly id: string
  readonly field: string
}

/** The id belongs to another account, has expired, or never existed. */
export class NotHandedOut extends Problem<NotHandedOut>()("NotHandedOut", {
  status: 404,
  error: "there is no such response, conversation or item",
  code: "not_found",
  fields: { field: Schema.String }
}) {}

const lifetime = Duration.toMillis(Duration.days(30))
const idsMax = 10_000
/** The maximum number of ids recorded per response. */
const responseIdsMax = 1_000
/** The maximum number of expired ids deleted per response. */
const expiredIdsMax = 100
/** The maximum number of ids per query. */
const queriedIdsMax = 500

/** Hashes an id, because a vendor's ids can have any length. */
const hashOf = (id: string): string => createHash("sha256").update(id).digest("base64url")

export type Kept = ReturnType<typeof make>

export const make = (sql: SqlClient) => {
  const ofOwner = ({ account_id, tenant_id }: Actor) => sql`tenant_id = ${tenant_id} AND account_id = ${account_id}`

  /** Returns the first of these ids that the owner has not received in the last 30 days. */
  const unknownAmong = (owner: Actor, named: ReadonlyArray<Named>, now: number): Effect.Effect<Named | undefined> =>
    Effect.gen(function* () {
      for (let at = 0; at < named.length; at += queriedIdsMax) {
        const batch = named.slice(at, at + queriedIdsMax).map((one) => ({ ...one, hash: hashOf(one.id) }))
        const rows = yield* sql<{ id: string }>`SELECT id FROM tollgate_chat_kept WHERE ${ofOwner(owner)}
          AND at > ${now - lifetime} AND ${sql.in(
            "id",
            batch.map(({ hash }) => hash)
          )}`
        const known = new Set(rows.map(({ id }) => id))
        const unknown = batch.find(({ hash }) => !known.has(hash))
        if (unknown !== undefined) return unknown
      }
      return undefined
    }).pipe(Effect.orDie)

  /** Returns statements that record these ids and delete old ones, for the settling transaction. */
  const handedOut = (owner: Actor, ids: ReadonlyArray<string>, now: number): ReadonlyArray<Statement> => {
    const { account_id, tenant_id } = owner
    const hashes = [...new Set(ids)].slice(0, responseIdsMax).map(hashOf)
    if (hashes.length === 0) return []
    return [
      ...hashes.map((hash) =>
        statement(sql`INSERT INTO tollgate_chat_kept (tenant_id, account_id, id, number, at)
          SELECT ${tenant_id}, ${account_id}, ${hash}, COALESCE(max(number), 0) + 1, ${now}
          FROM tollgate_chat_kept WHERE ${ofOwner(owner)}
          ON CONFLICT (tenant_id, account_id, id) DO UPDATE SET number = excluded.number, at = excluded.at`)
      ),
      statement(sql`DELETE FROM tollgate_chat_kept WHERE ${ofOwner(owner)} AND number <=
        (SELECT max(number) FROM tollgate_chat_kept WHERE ${ofOwner(owner)}) - ${idsMax}`),
      statement(sql`DELETE FROM tollgate_chat_kept WHERE (tenant_id, account_id, id) IN (
        SELECT tenant_id, account_id, id FROM tollgate_chat_kept WHERE at <= ${now - lifetime}
        ORDER BY at LIMIT ${expiredIdsMax})`)
    ]
  }

  return { unknownAmong, handedOut }
}
