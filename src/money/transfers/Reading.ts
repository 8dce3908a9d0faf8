/** Reads transfers as rows with the senders' names, or as the `Transfer` shown to clients. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Effect } from "effect"
import type { AccountId, BillingAccountId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import { paginated } from "../../kernel/Page.ts"
import type { PageOf } from "../../kernel/Page.ts"
import type { TenantsContract } from "../../people/tenants/Tenants.ts"
import type { Transfer } from "./Transfer.ts"
import type { TransferId, TransferStatus } from "./States.ts"

export interface Row {
  readonly id: TransferId
  readonly billing_account_id: BillingAccountId
  readonly sender_account_id: AccountId
  readonly sender_name: string | null
  readonly sender_email: string | null
  readonly recipient_email: string
  readonly recipient_account_id: AccountId | null
  readonly kind: Transfer["kind"]
  readonly amount: string
  readonly reason: Transfer["reason"]
  readonly message: string | null
  readonly status: TransferStatus
  readonly request_hash: string
  readonly letters: number
  readonly created_at: number
  readonly updated_at: number
  readonly expires_at: number
  readonly last_sent_at: number
  readonly resent_at: number | null
  readonly ended_at: number | null
}

const columns = `t.id, t.billing_account_id, t.sender_account_id, t.recipient_email, t.recipient_account_id,
  t.kind, CAST(t.amount AS TEXT) AS amount, t.reason, t.message, t.status, t.request_hash, t.letters, t.created_at,
  t.updated_at, t.expires_at, t.last_sent_at, t.resent_at, t.ended_at`

/** Conditions refer to the table `tollgate_transfers` as `t`. */
export const make = (sql: SqlClient, tenants: TenantsContract) => {
  /** Reads transfers, newest first. */
  const select = Effect.fnUntraced(function* (condition: Fragment, limit: number, offset: number) {
    const rows = yield* sql<Omit<Row, "sender_name" | "sender_email">>`
      SELECT ${sql.literal(columns)} FROM tollgate_transfers t WHERE ${condition}
      ORDER BY t.id DESC LIMIT ${limit} OFFSET ${offset}`
    const senders = yield* tenants.named([...new Set(rows.map(({ sender_account_id }) => sender_account_id))])
    return rows.map((row): Row => {
      const sender = senders.find(({ id }) => id === row.sender_account_id)
      return { ...row, sender_name: sender?.name ?? null, sender_email: sender?.email ?? null }
    })
  }, Effect.orDie)

  const one = (condition: Fragment) => Effect.map(select(condition, 1, 0), ([row]) => row)

  const page = Effect.fnUntraced(function* (condition: Fragment, { page, per_page }: PageOf) {
    const [counted] = yield* Effect.orDie(
      sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_transfers t WHERE ${condition}`
    )
    const rows = yield* select(condition, per_page, (page - 1) * per_page)
    return paginated({ page, per_page }, counted?.n ?? 0, rows.map(transferOf))
  })

  return {
    one,
    byId: (id: TransferId) => one(sql`t.id = ${id}`),
    /** Reads a transfer that is known to exist. */
    get: (id: TransferId) => Effect.map(one(sql`t.id = ${id}`), (row) => transferOf(row!)),
    page,
    /** Reads up to 100 pending transfers that expired by `now`, with ids below `before`, newest first. */
    expired: (now: number, before: string) =>
      select(sql`t.status = 'pending' AND t.expires_at <= ${now} AND t.id < ${before}`, 100, 0),
    /** The time when the next pending transfer expires. Null if none is pending. */
    nextExpiry: sql<{
      at: number | null
    }>`SELECT min(expires_at) AS at FROM tollgate_transfers WHERE status = 'pending'`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row?.at ?? null)
    )
  }
}

export type Reading = ReturnType<typeof make>

export const transferOf = (row: Row): Transfer => {
  const ended = (status: TransferStatus) => (row.status === status ? row.ended_at : null)
  return {
    id: row.id,
    status: row.status,
    kind: row.kind,
    amount: fromRow(row.amount),
    reason: row.reason,
    message: row.message,
    sender: { account_id: row.sender_account_id, name: row.sender_name ?? "", email: row.sender_email ?? "" },
    recipient_email: row.recipient_email,
    recipient_account_id: row.recipient_account_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
    expires_at: row.expires_at,
    last_sent_at: row.last_sent_at,
    accepted_at: ended("accepted"),
    declined_at: ended("declined"),
    revoked_at: ended("revoked")
  }
}
