/** Reads the books' rows for an audit, slice by slice, and finally the stored figures to compare. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { accountsTable } from "../rows/Rows.ts"
import { lastUpTo, tables } from "../rows/RowLinks.ts"
import { exact, valueRead } from "../totals/SortedIndex.ts"
import { measureColumns } from "./AuditSums.ts"
import type { Checkpoint } from "./Checkpoint.ts"
import { unknownPayer } from "./RunningTotals.ts"
import type { AccountRow, Dimensions, EntryRow, Place, RecordRow, RunningTotals } from "./RunningTotals.ts"

interface Parts {
  readonly sql: SqlClient
  readonly since: Checkpoint
  readonly totals: RunningTotals
  readonly place: Place
  /**
   * The last rows that were read. A checkpoint must identify existing rows, not unused numbers, because after a copy to the other engine, the next
   * row gets the number after the last row.
   */
  readonly lastRows: Place
}

export const readerOf = (sql: SqlClient, since: Checkpoint, totals: RunningTotals) => {
  const place: Place = { entry: since.entry, record: since.record }
  const lastRows: Place = { ...place }
  const parts: Parts = { sql, since, totals, place, lastRows }
  return {
    place,
    lastRows,
    entries: entries(parts),
    records: records(parts),
    rest: rest(parts),
    last: last(parts)
  }
}

/** Reads at most `limit` entries, up to the row `end`. Returns their number. */
const entries = (parts: Parts) =>
  Effect.fnUntraced(function* (limit: number, end: number) {
    const { lastRows, place, sql, totals } = parts
    const rows = yield* sql.unsafe(
      `SELECT ${entryColumns} FROM tollgate_ledger_entries e WHERE e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?`,
      [place.entry, end, limit]
    ).values
    for (const values of rows) {
      const row = entryOf(values)
      if (!totals.accounts.has(row.account)) yield* begin(parts, row.account)
      totals.readEntry(row)
      place.entry = lastRows.entry = row.seq
    }
    // Skip unused numbers.
    if (rows.length < limit && end < everything) place.entry = end
    return rows.length
  })

/** Loads an account's state at the checkpoint. */
const begin = Effect.fnUntraced(function* ({ since, sql, totals }: Parts, id: string) {
  const [last] = totals.whole ? [] : yield* sql<EntryRow>`${lastUpTo(sql, "e", id, since.entry, entryColumns)}`
  totals.begin(id, last)
})

const records = (parts: Parts) =>
  Effect.fnUntraced(function* (limit: number, end: number) {
    const { lastRows, place, sql, totals } = parts
    const values = yield* sql.unsafe(
      `SELECT ${recordColumns} FROM tollgate_usage_records r WHERE r.seq > ? AND r.seq <= ? ORDER BY r.seq LIMIT ?`,
      [place.record, end, limit]
    ).values
    const rows = values.map(recordOf)
    yield* know(parts, rows)
    for (const row of rows) {
      if (!totals.tenants.has(row.tenant)) yield* beginTenant(parts, row.tenant)
      totals.readRecord(row)
      place.record = lastRows.record = row.seq
    }
    if (rows.length < limit && end < everything) place.record = end
    return rows.length
  })

const beginTenant = Effect.fnUntraced(function* ({ since, sql, totals }: Parts, tenant: string) {
  const [last] = totals.whole
    ? []
    : yield* sql<{ readonly seq: number; readonly number: number; readonly at: number }>`${lastUpTo(
        sql,
        "r",
        tenant,
        since.record,
        "r.seq, r.number, r.at"
      )}`
  totals.tenants.set(tenant, { number: last?.number ?? 0, newest: last?.seq ?? null, at: last?.at ?? -1, offsets: 0 })
})

const know = Effect.fnUntraced(function* ({ sql, totals }: Parts, rows: ReadonlyArray<RecordRow>) {
  const missing = new Set<number>()
  for (const { dimensions } of rows) if (!totals.dimensions.has(dimensions)) missing.add(dimensions)
  if (missing.size === 0) return
  for (const number of missing) totals.dimensions.set(number, undefined)
  const found = yield* sql.unsafe<Dimensions>(
    `${selectDimensions} WHERE d.number IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`,
    [JSON.stringify([...missing])]
  )
  for (const one of found) totals.dimensions.set(one.number, one)
})

/** Reads all remaining rows, in slices. */
const rest = (parts: Parts) =>
  Effect.gen(function* () {
    for (const read of [entries(parts), records(parts)]) while ((yield* read(restSlice, everything)) === restSlice);
  })

/** Reads the remaining rows and compares all stored figures, in one snapshot. */
const last = (parts: Parts) =>
  Effect.gen(function* () {
    yield* rest(parts)
    yield* accountsNow(parts)
    yield* callsNow(parts)
    yield* reservationsNow(parts)
    yield* headsNow(parts)
    if (parts.totals.whole) yield* watermarksNow(parts)
    parts.totals.compareTransfers()
  })

const accountsNow = ({ sql, totals }: Parts) =>
  Effect.gen(function* () {
    const touched = totals.whole
      ? sql.literal("")
      : sql`WHERE id IN (SELECT value FROM json_each(${JSON.stringify([...totals.accounts.keys()])}))`
    const rows =
      yield* sql<AccountRow>`SELECT ${sql.literal(accountColumns)} FROM ${sql.literal(accountsTable)} ${touched}`
    totals.compareAccounts(rows)
    const [sums] = yield* sql<{ readonly customers: string; readonly escrow: string }>`
      SELECT CAST(COALESCE(SUM(giftable + granted), 0) AS TEXT) AS customers, CAST(COALESCE(SUM(held), 0) AS TEXT) AS escrow
      FROM ${sql.literal(accountsTable)}`
    totals.compareTotals(BigInt(sums!.customers), BigInt(sums!.escrow))
  })

const callsNow = ({ sql, totals }: Parts) =>
  Effect.gen(function* () {
    const ids = [...totals.calls.keys()].slice(0, callsMax)
    const rows = yield* sql<{ readonly id: string; readonly cost: number | string; readonly payer: string | null }>`
      SELECT r.id, ${sql.literal(exact("r.cost"))} AS cost, d.billing_account_id AS payer
      FROM tollgate_usage_records r LEFT JOIN tollgate_usage_dimensions d ON d.number = r.dimensions
      WHERE r.id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
    totals.compareCalls(
      ids,
      new Map(rows.map(({ cost, id, payer }) => [id, { cost: valueRead(cost), payer: payer ?? unknownPayer }]))
    )
  })

const reservationsNow = ({ sql, totals }: Parts) =>
  Effect.map(
    sql<{ readonly id: string }>`SELECT r.id FROM tollgate_ledger_reservations r
      LEFT JOIN tollgate_usage_dimensions d ON d.number = r.dimensions WHERE d.number IS NULL`,
    (rows) => {
      for (const { id } of rows)
        totals.report("a call has dimensions of its tenant", { id, expected: "any", found: "none" })
    }
  )

const headsNow = ({ sql, totals }: Parts) =>
  Effect.suspend(() => {
    const touched = totals.whole
      ? sql.literal("")
      : sql`WHERE h.id IN (SELECT value FROM json_each(${JSON.stringify([...totals.tenants.keys()])}))`
    return Effect.map(
      sql<HeadRow>`SELECT h.id, h.total, h.newest FROM ${sql.literal(tables.r.heads)} h ${touched}`,
      (rows) => compareHeads(totals, rows)
    )
  })

interface HeadRow {
  readonly id: string
  readonly total: number
  readonly newest: number | null
}

const compareHeads = (totals: RunningTotals, rows: ReadonlyArray<HeadRow>): void => {
  const heads = new Map(rows.map((row) => [row.id, row]))
  for (const id of new Set([...heads.keys(), ...totals.tenants.keys()])) {
    const [head, tenant] = [heads.get(id), totals.tenants.get(id)]
    // With several writers, a head can exist before its tenant has a record, because the batch creates and locks the head first.
    const isSame = (head?.total ?? 0) === (tenant?.number ?? 0) && (head?.newest ?? null) === (tenant?.newest ?? null)
    if (isSame) continue
    totals.report("tollgate_usage_heads names the newest record", {
      id,
      expected: headInWords(tenant?.number, tenant?.newest),
      found: headInWords(head?.total, head?.newest)
    })
  }
}

const headInWords = (records: number | undefined, newest: number | null | undefined): string =>
  records === undefined ? "nothing" : `${records} records up to row ${newest ?? "none"}`

const watermarksNow = ({ sql, totals }: Parts) =>
  Effect.map(
    sql<{
      readonly id: string
      readonly number: number
    }>`SELECT tenant_id AS id, number FROM tollgate_usage_watermarks`,
    (rows) => {
      for (const { id, number } of rows) {
        const records = totals.tenants.get(id)?.number ?? 0
        if (number >= 0 && number <= records) continue
        totals.report("a watermark is the number of a record", {
          id,
          expected: `0 to ${records}`,
          found: `${number}`
        })
      }
    }
  )

// Rows are read as arrays in this column order, because arrays cost the driver less than half as much as objects.
const entryColumns = `e.seq, e.billing_account_id AS account, e.number, e.type, ${exact("e.amount")} AS amount,
  ${exact("e.balance")} AS balance, ${exact("e.giftable")} AS giftable, e.source, e.reference_id AS reference, e.at,
  e.previous`

const entryOf = (row: ReadonlyArray<unknown>) =>
  ({
    seq: row[0],
    account: row[1],
    number: row[2],
    type: row[3],
    amount: row[4],
    balance: row[5],
    giftable: row[6],
    source: row[7],
    reference: row[8],
    at: row[9],
    previous: row[10]
  }) as EntryRow

const recordColumns = `r.seq, r.id, r.tenant_id AS tenant, r.number, r.at, r.dimensions, ${exact("r.cost")} AS cost,
  r.previous, ${measureColumns}`

const recordOf = (row: ReadonlyArray<unknown>) =>
  ({
    seq: row[0],
    id: row[1],
    tenant: row[2],
    number: row[3],
    at: row[4],
    dimensions: row[5],
    cost: row[6],
    previous: row[7],
    success: row[8],
    prompt_tokens: row[9],
    completion_tokens: row[10],
    units: row[11],
    latency_ms: row[12]
  }) as RecordRow

const selectDimensions = `SELECT d.*, a.tenant_id AS account_tenant
  FROM tollgate_usage_dimensions d LEFT JOIN tollgate_ledger_accounts a ON a.id = d.billing_account_id`

const everything = Number.MAX_SAFE_INTEGER

/** The number of rows per slice of the remaining rows. */
const restSlice = 4096

/** The maximum number of mismatched calls to look up. It exceeds the number that can be reported. */
const callsMax = 10_000

const accountColumns = `id, ${exact("giftable")} AS giftable, ${exact("granted")} AS granted, ${exact("held")} AS held, funded, entries,
  newest`
