/** The books' table columns, and the conversions of their rows. Money is read as text. */
import type { Head, Linked } from "./RowLinks.ts"
import { withDimensions } from "./Dimensions.ts"
import type { DimensionsRow, NumberOf } from "./Dimensions.ts"
import type { Account, AccountStatus, Debt, Dimensions, Entry, Reservation, UsageRecord } from "../rules/Transaction.ts"

/** The account columns that seldom change. The amounts refer to `number`. */
export const accountColumns = ["id", "tenant_id", "number", "status", "held", "funded"] as const

/** The account columns that charges change. They are in a narrow table, so that many accounts share a page. */
export const amountColumns = ["account", "giftable", "granted", "reserved", "entries", "newest"] as const

export const selectLastAccount = "SELECT MAX(number) AS number FROM tollgate_ledger_accounts"

export const accountsTable = `(SELECT a.id, a.tenant_id, a.number, a.status, m.giftable, m.granted, a.held, m.reserved, a.funded,
    a.debts, m.entries, m.newest
  FROM tollgate_ledger_accounts a CROSS JOIN tollgate_ledger_amounts m ON m.account = a.number)`

/** The columns that `accountOf` needs, with money as text. */
export const accountSelection = `id, tenant_id, status, CAST(giftable AS TEXT) AS giftable, CAST(granted AS TEXT) AS granted,
  CAST(held AS TEXT) AS held, CAST(reserved AS TEXT) AS reserved, funded, debts, entries`

export const selectAccounts = `SELECT ${accountSelection}, number, newest FROM ${accountsTable}
  WHERE id IN (SELECT value FROM json_each(?))`

export interface AccountRow {
  readonly id: string
  readonly tenant_id: string
  readonly status: AccountStatus
  readonly giftable: string
  readonly granted: string
  readonly held: string
  readonly reserved: string
  readonly funded: number
  readonly debts: string | null
  readonly entries: number
}

export interface KnownAccountRow extends AccountRow {
  readonly number: number
  readonly newest: number | null
}

export const accountOf = (row: AccountRow): Account => ({
  id: row.id,
  tenant_id: row.tenant_id,
  status: row.status,
  giftable: BigInt(row.giftable),
  granted: BigInt(row.granted),
  held: BigInt(row.held),
  reserved: BigInt(row.reserved),
  funded: row.funded === 1,
  entries: row.entries,
  debts: row.debts === null ? undefined : parseDebts(row.debts)
})

/** Reads debts from a JSON object that maps payments to amounts (as text). */
const parseDebts = (text: string): ReadonlyArray<Debt> =>
  Object.entries(JSON.parse(text) as Record<string, string>).map(([payment, amount]) => ({
    payment,
    amount: BigInt(amount)
  }))

/** Formats debts as JSON; `null` if there are none. */
export const formatDebts = (debts: Account["debts"]): string | null =>
  debts === undefined
    ? null
    : JSON.stringify(Object.fromEntries(debts.map(({ amount, payment }) => [payment, `${amount}`])))

export const accountRow = (a: Account, number: number): ReadonlyArray<unknown> => [
  a.id,
  a.tenant_id,
  number,
  a.status,
  a.held,
  a.funded ? 1 : 0
]

export const amountRow = (a: Account, { newest, owner }: Head): ReadonlyArray<unknown> => [
  owner,
  a.giftable,
  a.granted,
  a.reserved,
  a.entries,
  newest
]

export const reservationColumns = ["id", "dimensions", "amount", "at", "run", "budgets", "tokens"] as const

export const reservationRow = (r: Reservation, numberOf: NumberOf): ReadonlyArray<unknown> => [
  r.id,
  numberOf(r.dimensions),
  r.amount,
  r.at,
  r.run,
  formatIds(r.budgets),
  r.tokens ?? 0
]

/** Formats ids as a JSON array; `null` if there are none. The text is cached by the identity of `ids`. */
const formatIds = (ids: ReadonlyArray<string> | undefined): string | null => {
  if (ids === undefined) return null
  let text = writtenIds.get(ids)
  if (text === undefined) writtenIds.set(ids, (text = JSON.stringify(ids)))
  return text
}

const writtenIds = new WeakMap<ReadonlyArray<string>, string>()

export const parseIds = (text: string | null): ReadonlyArray<string> | undefined =>
  text === null ? undefined : (JSON.parse(text) as ReadonlyArray<string>)

export const reservationOf = (
  row: Pick<ReservationRow, "amount" | "at" | "budgets" | "id" | "run" | "tokens">,
  dimensions: Dimensions
): Reservation => ({
  id: row.id,
  dimensions,
  amount: BigInt(row.amount),
  at: row.at,
  run: row.run,
  budgets: parseIds(row.budgets),
  tokens: row.tokens
})

export const selectReservations = `SELECT r.id, CAST(r.amount AS TEXT) AS amount, r.at, r.run, r.budgets, r.tokens, d.*
  FROM tollgate_ledger_reservations r ${withDimensions}
  WHERE r.id IN (SELECT value FROM json_each(?))`

export interface ReservationRow extends DimensionsRow {
  readonly id: string
  readonly amount: string
  readonly at: number
  readonly run: string
  readonly budgets: string | null
  readonly tokens: number
}

export const selectEnd = `SELECT e.seq AS entry, e.at AS entry_at, u.seq AS usage, u.at AS usage_at
  FROM (SELECT 1) one LEFT JOIN (SELECT seq, at FROM tollgate_ledger_entries ORDER BY seq DESC LIMIT 1) e ON true
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
  "at",
  "previous"
] as const

export const entryRow = ({ previous, row: e, seq }: Linked<Entry>): ReadonlyArray<unknown> => [
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
  e.at,
  previous
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
  "error_type",
  "previous",
  "token_details",
  "request_id",
  "budgets",
  "vendor_request",
  "vendor_cost",
  "request_hash",
  "answer_hash"
] as const

export const usageRow = (
  { previous, row: r, seq }: Linked<UsageRecord>,
  numberOf: NumberOf
): ReadonlyArray<unknown> => [
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
  r.error_type,
  previous,
  r.token_details === undefined ? null : JSON.stringify(r.token_details),
  r.request_id ?? null,
  formatIds(r.budgets),
  r.vendor_request ?? null,
  r.vendor_cost ?? null,
  hashWritten(r.request_hash),
  hashWritten(r.answer_hash)
]

const hashWritten = (hash: string | undefined): Buffer | null =>
  hash === undefined ? null : Buffer.from(hash, "base64")

export const tenantHeadColumns = ["tenant", "records", "newest"] as const

/** Selects the tenant numbers for a JSON array of ids. */
export const selectTenantNumbers =
  "SELECT id, number FROM tollgate_usage_tenants WHERE id IN (SELECT value FROM json_each(?))"
