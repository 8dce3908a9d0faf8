/** Reads open reservations for the operator's view, oldest first. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { fromRow } from "../../../kernel/Money.ts"
import type { Nano } from "../../../kernel/Money.ts"
import { withDimensions } from "./Dimensions.ts"

export interface OpenCall {
  readonly id: string
  /** The Unix time of the admission, in milliseconds. */
  readonly at: number
  readonly amount: Nano
  readonly run: string
  readonly account_id: string
  readonly tenant_id: string
  readonly payer_tenant_id: string
  readonly model: string
  readonly provider: string
  readonly endpoint: string
}

type Row = Omit<OpenCall, "amount"> & { readonly amount: string }

/** A cursor. The list continues after this call. */
export interface After {
  readonly at: number
  readonly id: string
}

/** Creates the queries. The table is small, so a page can sort all of it. */
export const make = (sql: SqlClient) => {
  const columns = sql.literal(`r.id, r.at, CAST(r.amount AS TEXT) AS amount, r.run, d.account_id, d.tenant_id,
      d.billing_source_tenant_id AS payer_tenant_id, d.model, d.provider, d.endpoint
    FROM tollgate_ledger_reservations r ${withDimensions}`)
  const openCallOf = (row: Row): OpenCall => ({ ...row, amount: fromRow(row.amount) })
  return {
    find: (call: string) =>
      Effect.map(Effect.orDie(sql<Row>`SELECT ${columns} WHERE r.id = ${call}`), ([row]) => row && openCallOf(row)),
    page: (after: After | undefined, limit: number) =>
      Effect.map(
        Effect.orDie(
          sql<Row>`SELECT ${columns} WHERE ${after === undefined ? sql`true` : sql`(r.at, r.id) > (${after.at}, ${after.id})`}
            ORDER BY r.at, r.id LIMIT ${limit}`
        ),
        (rows) => rows.map(openCallOf)
      ),
    countOf: (tenant: string) =>
      Effect.map(
        Effect.orDie(
          sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_ledger_reservations r ${sql.literal(withDimensions)}
            WHERE d.billing_source_tenant_id = ${tenant}`
        ),
        ([row]) => row!.n
      ),
    /**
     * Counts and sums the reservations between consecutive `instants`, which are in descending order. Each interval includes its later end. The last
     * interval has no earlier end.
     */
    byAge: (instants: ReadonlyArray<number>) =>
      Effect.forEach(instants, (until, i) => {
        const since = instants[i + 1] ?? Number.MIN_SAFE_INTEGER
        return Effect.map(
          Effect.orDie(
            sql<{
              calls: number
              amount: string
            }>`SELECT count(*) AS calls, CAST(COALESCE(SUM(amount), 0) AS TEXT) AS amount
              FROM tollgate_ledger_reservations WHERE at > ${since} AND at <= ${until}`
          ),
          ([row]) => ({ calls: row!.calls, amount: fromRow(row!.amount) })
        )
      })
  }
}
