/** Stores the callers' external ids. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"

export type Kind = "person" | "tenant" | "key"

export interface External {
  /** The id of the account, tenant or application. */
  readonly id: string
  readonly credited_at: number | null
  readonly removed_at: number | null
}

export const make = (sql: SqlClient) => ({
  find: (kind: Kind, external_id: string): Effect.Effect<External | undefined> =>
    Effect.map(
      Effect.orDie(
        sql<External>`SELECT id, credited_at, removed_at FROM tollgate_provisioning_externals
          WHERE kind = ${kind} AND external_id = ${external_id}`
      ),
      ([row]) => row
    ),

  /**
   * Assigns the external id to `id`. Fails the transaction if the external id belongs to a resource other than `before` (`id` by default), or if `id`
   * already has another external id.
   */
  claim: (kind: Kind, external_id: string, id: string, before: External | undefined, now: number): Statement =>
    statement(
      sql`INSERT INTO tollgate_provisioning_externals (kind, external_id, id, created_at)
        SELECT ${kind}, ${external_id}, ${id}, ${now} WHERE NOT EXISTS (SELECT 1 FROM tollgate_provisioning_externals
          WHERE kind = ${kind} AND id = ${id} AND external_id <> ${external_id} AND removed_at IS NULL)
        ON CONFLICT (kind, external_id) DO UPDATE SET id = excluded.id, removed_at = NULL
          WHERE tollgate_provisioning_externals.id = ${before?.id ?? id} RETURNING id`,
      1
    ),

  /** Records that credit was given. Fails the transaction if this was already recorded. */
  credited: (kind: Kind, external_id: string, now: number): Statement =>
    statement(
      sql`UPDATE tollgate_provisioning_externals SET credited_at = ${now}
        WHERE kind = ${kind} AND external_id = ${external_id} AND credited_at IS NULL RETURNING id`,
      1
    ),

  removed: (kind: Kind, external_id: string, now: number): Statement =>
    statement(
      sql`UPDATE tollgate_provisioning_externals SET removed_at = ${now}
        WHERE kind = ${kind} AND external_id = ${external_id} AND removed_at IS NULL`
    )
})

export type Externals = ReturnType<typeof make>
