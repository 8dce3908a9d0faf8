/** Finds transfers for the operator by id or recipient, and totals the pending ones by day. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { tenantOf } from "../../kernel/Ids.ts"
import type { BillingAccountId, TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { TransferStatus } from "./States.ts"

export interface Line {
  readonly id: string
  readonly status: TransferStatus
  readonly amount: Nano
  readonly sender_tenant_id: TenantId
  readonly recipient_email: string
  readonly created_at: number
}

interface Row extends Omit<Line, "amount" | "sender_tenant_id"> {
  readonly amount: string
  readonly billing_account_id: BillingAccountId
}

export const make = (sql: SqlClient) => {
  const columns =
    sql.literal(`id, status, CAST(amount AS TEXT) AS amount, billing_account_id, recipient_email, created_at
    FROM tollgate_transfers`)
  const lineOf = ({ amount, billing_account_id, ...row }: Row): Line => ({
    ...row,
    amount: fromRow(amount),
    sender_tenant_id: tenantOf(billing_account_id)
  })
  return {
    find: (id: string) =>
      Effect.map(Effect.orDie(sql<Row>`SELECT ${columns} WHERE id = ${id}`), (rows) => rows.map(lineOf)),
    /** Returns the transfers sent to an email address, newest first. */
    toAddress: (email: string, limit: number) =>
      Effect.map(
        Effect.orDie(sql<Row>`SELECT ${columns} WHERE recipient_email = ${email} ORDER BY id DESC LIMIT ${limit}`),
        (rows) => rows.map(lineOf)
      ),
    /** Totals the pending transfers by UTC day of creation. */
    pending: Effect.map(
      Effect.orDie(
        sql<{ since: number; transfers: number; amount: string }>`SELECT created_at - created_at % 86400000 AS since,
            count(*) AS transfers, CAST(SUM(amount) AS TEXT) AS amount
          FROM tollgate_transfers WHERE status = 'pending' GROUP BY 1 ORDER BY 1`
      ),
      (rows) => rows.map(({ amount, ...row }) => ({ ...row, amount: fromRow(amount) }))
    )
  }
}
