/** How metered calls stand in the books, by their ids: for rooms that keep something of their own beside a call. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { usageOf } from "../kernel/Ids.ts"

/**
 * `open`: something is set aside for it. `ended`: it left a usage record, with this `error_type` where it failed. `unknown`: the books
 * have no such call.
 */
export type CallState =
  | { readonly _tag: "open" }
  | { readonly _tag: "ended"; readonly error_type: string | null }
  | { readonly _tag: "unknown" }

export const stateOf = (sql: SqlClient, call: string): Effect.Effect<CallState> =>
  Effect.gen(function* () {
    const [reservation] = yield* sql`SELECT 1 FROM tollgate_ledger_reservations WHERE id = ${call}`
    if (reservation !== undefined) return { _tag: "open" } as const
    const [record] = yield* sql<{ error_type: string | null }>`
      SELECT error_type FROM tollgate_usage_records WHERE id = ${usageOf(call)}`
    return record === undefined
      ? ({ _tag: "unknown" } as const)
      : ({ _tag: "ended", error_type: record.error_type } as const)
  }).pipe(Effect.orDie)

/** Those of the calls for which something is set aside. */
export const openOf = (sql: SqlClient, calls: ReadonlyArray<string>): Effect.Effect<ReadonlySet<string>> =>
  calls.length === 0
    ? Effect.succeed(new Set())
    : Effect.map(
        Effect.orDie(sql<{ id: string }>`SELECT id FROM tollgate_ledger_reservations WHERE ${sql.in("id", calls)}`),
        (rows) => new Set(rows.map(({ id }) => id))
      )
