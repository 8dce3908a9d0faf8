/**
 * Suspensions of users, by the operator, the directory (SCIM), or both. A suspended user's tokens and keys are rejected until every suspension has
 * ended. The user keeps their credit and memberships.
 *
 * Where the specification is silent:
 * - The operator can end any suspension; the directory can end only its own.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import type { AccountId } from "../../kernel/Ids.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { BelongingContract } from "./Belonging.ts"
import type { TenantsContract } from "./Tenants.ts"

/** The party that imposed a suspension. */
export type Suspender = "operator" | "directory"

export const make = (sql: SqlClient, writer: WriterContract, belonging: BelongingContract) => {
  const suspend: TenantsContract["suspend"] = Effect.fn("Tenants.suspend")(function* (
    account,
    beside,
    by = "operator"
  ) {
    const now = yield* Clock.currentTimeMillis
    const mine = sql.literal(`by_${by}`)
    const added = sql`INSERT INTO tollgate_tenants_suspensions (account_id, suspended_at, by_operator, by_directory)
      SELECT id, ${now}, ${Number(by === "operator")}, ${Number(by === "directory")}
      FROM tollgate_tenants_accounts WHERE id = ${account}
      ON CONFLICT (account_id) DO UPDATE SET ${mine} = 1 WHERE tollgate_tenants_suspensions.${mine} = 0 RETURNING account_id`
    return yield* afterCommit(Statements.tryWrite(writer, statement(added, 1), ...beside), belonging.changed(account))
  })

  const activate: TenantsContract["activate"] = Effect.fn("Tenants.activate")(function* (
    account,
    beside,
    by = "operator"
  ) {
    const of = sql`tollgate_tenants_suspensions WHERE account_id = ${account}`
    const ended =
      by === "operator"
        ? [statement(sql`DELETE FROM ${of} RETURNING account_id`, 1)]
        : [
            statement(
              sql`UPDATE tollgate_tenants_suspensions SET by_directory = 0
                WHERE account_id = ${account} AND by_directory = 1 RETURNING account_id`,
              1
            ),
            statement(sql`DELETE FROM ${of} AND by_operator = 0 AND by_directory = 0`)
          ]
    return yield* afterCommit(Statements.tryWrite(writer, ...ended, ...beside), belonging.changed(account))
  })

  const suspendersOf: TenantsContract["suspendersOf"] = (account) =>
    Effect.map(
      Effect.orDie(
        sql<{ readonly by_operator: number; readonly by_directory: number }>`SELECT by_operator, by_directory
          FROM tollgate_tenants_suspensions WHERE account_id = ${account}`
      ),
      ([row]) => [
        ...(row?.by_operator === 1 ? (["operator"] as const) : []),
        ...(row?.by_directory === 1 ? (["directory"] as const) : [])
      ]
    )

  const isSuspended = (account: AccountId) =>
    Effect.map(
      Effect.orDie(sql`SELECT 1 FROM tollgate_tenants_suspensions WHERE account_id = ${account}`),
      (rows) => rows.length > 0
    )

  return { suspend, activate, suspendersOf, isSuspended }
}
