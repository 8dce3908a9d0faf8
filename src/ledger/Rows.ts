/** The rows of the books' tables: their columns, how they are read and written, money as text where it is read. */
import { withDimensions } from "./Dimensions.ts"
import type { DimensionsRow, NumberOf } from "./Dimensions.ts"
import type { Account, AccountStatus, Entry, Reservation, UsageRecord } from "./Transaction.ts"

export const accountColumns = [
  "id",
  "tenant_id",
  "status",
  "giftable",
  "granted",
  "held",
  "reserved",
  "funded",
  "entries"
] as const

/** Takes what follows the tenant in `accountRow`, and the id. */
export const changeAccount = `UPDATE tollgate_ledger_accounts SET ${accountColumns
  .slice(2)
  .map((column) => `${column} = ?`)
  .join(", ")} WHERE id = ?`

/** Takes the amounts and the count of entries, and the id. */
export const moveAccount =
  "UPDATE tollgate_ledger_accounts SET giftable = ?, granted = ?, reserved = ?, entries = ? WHERE id = ?"

/** The columns of an account, money as text, for `accountOf`. */
export const accountSelection = `id, tenant_id, status, CAST(giftable AS TEXT) AS giftable, CAST(granted AS TEXT) AS granted,
  CAST(held AS TEXT) AS held, CAST(reserved AS TEXT) AS reserved, funded, entries`

export const selectAccounts = `SELECT ${accountSelection} FROM tollgate_ledger_accounts WHERE id IN (SELECT value FROM json_each(?))`

export interface AccountRow {
  readonly id: string
  readonly tenant_id: string
  readonly status: AccountStatus
  readonly giftable: string
  readonly granted: string
  readonly held: string
  readonly reserved: string
  readonly funded: number
  readonly entries: number
}

export const accountOf = (row: AccountRow): Account => ({
  ...row,
  giftable: BigInt(row.giftable),
  granted: BigInt(row.granted),
  held: BigInt(row.held),
  reserved: BigInt(row.reserved),
  funded: row.funded === 1
})

export const accountRow = (a: Account): ReadonlyArray<unknown> => [
  a.id,
  a.tenant_id,
  a.status,
  a.giftable,
  a.granted,
  a.held,
  a.reserved,
  a.funded ? 1 : 0,
  a.entries
]

export const reservationColumns = ["id", "dimensions", "amount", "at", "run"] as const

export const reservationRow = (r: Reservation, numberOf: NumberOf): ReadonlyArray<unknown> => [
  r.id,
  numberOf(r.dimensions),
  r.amount,
  r.at,
  r.run
]

export const selectReservations = `SELECT r.id, CAST(r.amount AS TEXT) AS amount, r.at, r.run, d.*
  FROM tollgate_ledger_reservations r ${withDimensions}
  WHERE r.id IN (SELECT value FROM json_each(?))`

export interface ReservationRow extends DimensionsRow {
  readonly id: string
  readonly amount: string
  readonly at: number
  readonly run: string
}

export const selectEnd = `SELECT e.seq AS entry, e.at AS entry_at, u.seq AS usage, u.at AS usage_at
  FROM (SELECT 1) LEFT JOIN (SELECT seq, at FROM tollgate_ledger_entries ORDER BY seq DESC LIMIT 1) e ON true
  LEFT JOIN (SELECT seq, at FROM tollgate_usage_records ORDER BY seq DESC LIMIT 1) u ON true`

export const entryColumns = [
  "seq",
  "billing_account_id",
  "number",
  "type",
  "amount",
  "balance",
  "giftable",
  "source",
  "reference_id",
  "description",
  "at"
] as const

export const entryRow = (seq: number, e: Entry): ReadonlyArray<unknown> => [
  seq,
  e.billing_account_id,
  e.number,
  e.type,
  e.amount,
  e.balance,
  e.giftable,
  e.source,
  e.reference_id,
  e.description,
  e.at
]

export const usageColumns = [
  "seq",
  "id",
  "tenant_id",
  "number",
  "at",
  "dimensions",
  "prompt_tokens",
  "completion_tokens",
  "units",
  "cost",
  "uncollected",
  "reserved",
  "usage_source",
  "latency_ms",
  "success",
  "error_type"
] as const

export const usageRow = (seq: number, r: UsageRecord, numberOf: NumberOf): ReadonlyArray<unknown> => [
  seq,
  r.id,
  r.dimensions.tenant_id,
  r.number,
  r.at,
  numberOf(r.dimensions),
  r.prompt_tokens,
  r.completion_tokens,
  r.units,
  r.cost,
  r.uncollected,
  r.reserved,
  r.usage_source,
  r.latency_ms,
  r.success ? 1 : 0,
  r.error_type
]
