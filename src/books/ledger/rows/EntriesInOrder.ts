/** Reads ledger entries for the log (`books/log`), of all accounts in row order or of one account. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { withDimensions } from "./Dimensions.ts"
import { entriesAmong, offsetEvery } from "./RowLinks.ts"

/** An entry with its row. Amounts are nano-USD as decimal strings. */
export interface LoggedEntry {
  readonly seq: number
  readonly billing_account_id: string
  readonly number: number
  readonly type: string
  readonly amount: string
  readonly balance: string
  readonly giftable: string
  readonly source: string | null
  readonly reference_id: string
  readonly description: string
  readonly at: number
  /** The vendors' request ids of a charge (`kernel/VendorRequests`). `null` for other entries, and if the vendors sent none. */
  readonly vendor_request: string | null
  /** The body hashes of a charge's request and response (`upstream/wire/BodyHash`). `null` for other entries, and if unknown. */
  readonly request_hash: string | null
  readonly answer_hash: string | null
}

const columns = `e.seq, e.billing_account_id, e.number, e.type, CAST(e.amount AS TEXT), CAST(e.balance AS TEXT),
  CAST(e.giftable AS TEXT), e.source, e.reference_id, e.description, e.at, r.vendor_request,
  r.request_hash, r.answer_hash`

/** Joins a charge's usage record, which was written in the same transaction and is never deleted. */
const withRecord = "LEFT JOIN tollgate_usage_records r ON r.id = e.reference_id AND e.source IS NULL"

type Row = readonly [
  number,
  string,
  number,
  string,
  string,
  string,
  string,
  string | null,
  string,
  string,
  number,
  string | null,
  Uint8Array | null,
  Uint8Array | null
]

const hashRead = (hash: Uint8Array | null): string | null =>
  hash === null ? null : Buffer.from(hash.buffer, hash.byteOffset, hash.byteLength).toString("base64")

const entryOf = (row: Row): LoggedEntry => ({
  seq: row[0],
  billing_account_id: row[1],
  number: row[2],
  type: row[3],
  amount: row[4],
  balance: row[5],
  giftable: row[6],
  source: row[7],
  reference_id: row[8],
  description: row[9],
  at: row[10],
  vendor_request: row[11],
  request_hash: hashRead(row[12]),
  answer_hash: hashRead(row[13])
})

const selectAfter = `SELECT ${columns} FROM tollgate_ledger_entries e ${withRecord}
  WHERE e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?`

/** Reads at most `most` entries after the row `seq` and up to the row `last`. */
export const entriesAfter = (
  sql: SqlClient,
  seq: number,
  last: number,
  most: number
): Effect.Effect<ReadonlyArray<LoggedEntry>, SqlError> =>
  // Arrays cost the driver less than half as much as objects.
  Effect.map(sql.unsafe(selectAfter, [seq, last, most]).values, (rows) =>
    (rows as unknown as ReadonlyArray<Row>).map(entryOf)
  )

/** Reads the newest row's number; 0 if there is none. */
export const lastEntry = (sql: SqlClient): Effect.Effect<number, SqlError> =>
  Effect.map(
    sql<{ readonly last: number }>`SELECT COALESCE(MAX(seq), 0) AS last FROM tollgate_ledger_entries`,
    ([row]) => row!.last
  )

/** Counts the entries from the row `from` (inclusive) to the row `to` (exclusive). */
export const entriesBetween = (sql: SqlClient, from: number, to: number): Effect.Effect<number, SqlError> =>
  Effect.map(
    sql<{ readonly n: number }>`SELECT count(*) AS n FROM tollgate_ledger_entries WHERE seq >= ${from} AND seq < ${to}`,
    ([row]) => row!.n
  )

const read = (sql: SqlClient, account: string, from: number, to: number) =>
  Effect.map(
    sql`SELECT ${sql.literal(columns)} FROM ${entriesAmong(sql, account, { from, to }, withRecord)} ORDER BY e.number`
      .values,
    (rows) => (rows as unknown as ReadonlyArray<Row>).map(entryOf)
  )

export const entryNumbered = (
  sql: SqlClient,
  account: string,
  number: number
): Effect.Effect<LoggedEntry | undefined, SqlError> =>
  Effect.map(read(sql, account, number, number + 1), ([entry]) => entry)

export interface ChargedCall {
  readonly billing_account_id: string
  readonly usage_id: string
  readonly at: number
}

/** Finds the last block of `offsetEvery` entries that begins before this time, or the first block. Entries are in chronological order. */
const blockBefore = Effect.fnUntraced(function* (sql: SqlClient, account: string, at: number) {
  const [head] = yield* sql<{ readonly owner: number; readonly entries: number }>`
    SELECT a.number AS owner, m.entries FROM tollgate_ledger_accounts a
    CROSS JOIN tollgate_ledger_amounts m ON m.account = a.number WHERE a.id = ${account}`
  let [low, high] = [0, Math.floor((head?.entries ?? 0) / offsetEvery)]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const [row] = yield* sql<{ readonly at: number }>`SELECT e.at FROM tollgate_ledger_offsets o
      CROSS JOIN tollgate_ledger_entries e ON e.seq = o.seq WHERE o.owner = ${head!.owner} AND o.number = ${middle * offsetEvery}`
    if (row !== undefined && row.at < at) low = middle
    else high = middle - 1
  }
  return { first: low * offsetEvery, entries: head?.entries ?? 0 }
})

/** Finds the number of the account's first entry at or after this time; if there is none, the entry count plus one. */
export const firstEntryAt = Effect.fnUntraced(function* (
  sql: SqlClient,
  account: string,
  at: number
): Effect.fn.Return<number, SqlError> {
  const { entries, first } = yield* blockBefore(sql, account, at)
  const range = { from: first + 1, to: Math.min(first + offsetEvery, entries) + 1 }
  if (range.from >= range.to) return range.from
  const [before] = yield* sql<{ readonly n: number }>`
    SELECT count(*) AS n FROM ${entriesAmong(sql, account, range)} AND e.at < ${at}`
  return range.from + before!.n
})

/** Finds the entry of a call's charge; `undefined` if the call cost nothing. */
export const entryOfCharge = Effect.fnUntraced(function* (
  sql: SqlClient,
  { at, billing_account_id, usage_id }: ChargedCall
): Effect.fn.Return<LoggedEntry | undefined, SqlError> {
  const { entries, first } = yield* blockBefore(sql, billing_account_id, at)
  for (let from = Math.max(1, first); from <= entries; from += offsetEvery) {
    const block = yield* read(sql, billing_account_id, from, Math.min(from + offsetEvery, entries + 1))
    const found = block.find(({ reference_id, source }) => source === null && reference_id === usage_id)
    if (found !== undefined) return found
    if (block.some((entry) => entry.at > at)) return undefined
  }
  return undefined
})

export interface PaidCall extends ChargedCall {
  /** The tenant of the caller's credential. */
  readonly tenant_id: string
  readonly billing_source_tenant_id: string
}

export const paidCall = (sql: SqlClient, usage_id: string): Effect.Effect<PaidCall | undefined, SqlError> =>
  Effect.map(
    sql<PaidCall>`SELECT r.id AS usage_id, r.at, r.tenant_id, d.billing_account_id, d.billing_source_tenant_id
      FROM tollgate_usage_records r ${sql.literal(withDimensions)} WHERE r.id = ${usage_id}`,
    ([row]) => row
  )
