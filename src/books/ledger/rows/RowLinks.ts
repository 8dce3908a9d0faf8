/**
 * Where the rows of an account, or a tenant, are. Each row points to the one before it (`previous`). The newest of an account's entries is
 * kept with its amounts, that of a tenant's records in `tollgate_usage_heads`, and where each 64th is, in the offsets. So a charge changes no
 * index by account: that would be a page somewhere for each. A range of numbers is read backwards, from the first offset behind it, or
 * from the newest: a page at any depth takes at most 64 steps besides its own rows.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { Range } from "../../../kernel/Pieces.ts"

/** How many rows of an owner come to one offset. */
export const offsetEvery = 64

/** The newest row of an owner, and the owner's number in tables that change often. */
export interface Head {
  readonly owner: number
  /** `null` before the first. */
  newest: number | null
  /** Of an account where others write too: when its newest was booked. */
  readonly booked_at?: number
}

export interface Linked<Row> {
  readonly seq: number
  readonly row: Row
  readonly previous: number | null
  readonly owner: number
}

/** Links rows, which are to lie at these places, to those before them of the same owner; each is then the newest of its head. */
export const link = <Row>(
  seqs: ReadonlyArray<number>,
  rows: ReadonlyArray<Row>,
  headOf: (row: Row) => Head
): ReadonlyArray<Linked<Row>> => {
  const links: Array<Linked<Row>> = []
  for (const [i, row] of rows.entries()) {
    const head = headOf(row)
    const seq = seqs[i]!
    links.push({ seq, row, previous: head.newest, owner: head.owner })
    head.newest = seq
  }
  return links
}

/** Those that have an offset. */
export const offsetsOf = <Row extends { readonly number: number }>(
  links: ReadonlyArray<Linked<Row>>
): ReadonlyArray<Linked<Row>> => links.filter(({ row }) => row.number % offsetEvery === 0)

// ---- reading ------------------------------------------------------------------------------------------------------------

/** The tables of usage records `r`, and of entries `e`: their rows, offsets, and the heads, each with its `id` and the `total` of its rows. */
export const tables = {
  r: {
    rows: "tollgate_usage_records",
    offsets: "tollgate_usage_offsets",
    heads: `(SELECT n.id, n.number AS owner, h.records AS total, h.newest
      FROM tollgate_usage_tenants n CROSS JOIN tollgate_usage_heads h ON h.tenant = n.number)`
  },
  e: {
    rows: "tollgate_ledger_entries",
    offsets: "tollgate_ledger_offsets",
    heads: `(SELECT a.id, a.number AS owner, m.entries AS total, m.newest
      FROM tollgate_ledger_accounts a CROSS JOIN tollgate_ledger_amounts m ON m.account = a.number)`
  }
} as const
type Table = keyof typeof tables

/**
 * An owner's rows from the one at `start` (of the head `h`), or else the newest, backwards; further from a row `w` where `more` says so.
 */
const walk = (sql: SqlClient, table: Table, owner: string, start: Fragment, more: Fragment): Fragment => {
  const { heads, rows } = tables[table]
  const row = sql.literal(`${rows} ${table}`)
  const columns = sql.literal(`${table}.seq, ${table}.previous, ${table}.number`)
  const seq = sql.literal(`${table}.seq`)
  return sql`WITH RECURSIVE walk (seq, previous, number) AS (
      SELECT ${columns} FROM ${sql.literal(heads)} h CROSS JOIN ${row} ON ${seq} = COALESCE((${start}), h.newest) WHERE h.id = ${owner}
      UNION ALL SELECT ${columns} FROM walk w CROSS JOIN ${row} ON ${seq} = w.previous WHERE ${more}
    )`
}

const among = (sql: SqlClient, table: Table, owner: string, { from, to }: Range, beside: string): Fragment => {
  const { offsets, rows } = tables[table]
  const start = sql`SELECT o.seq FROM ${sql.literal(offsets)} o
    WHERE o.owner = h.owner AND o.number >= ${to - 1} ORDER BY o.number LIMIT 1`
  return sql`(${walk(sql, table, owner, start, sql`w.number > ${from}`)}
      SELECT seq FROM walk WHERE number >= ${from} AND number < ${to}
    ) w CROSS JOIN ${sql.literal(`${rows} ${table} ON ${table}.seq = w.seq ${beside}`)} WHERE true`
}

/** `tollgate_usage_records r`, a tenant's of a range of numbers. */
export const recordsAmong = (sql: SqlClient, tenant: string, range: Range, beside = ""): Fragment =>
  among(sql, "r", tenant, range, beside)

/** `tollgate_ledger_entries e`, an account's of a range of numbers. */
export const entriesAmong = (sql: SqlClient, account: string, range: Range): Fragment =>
  among(sql, "e", account, range, "")

/** The last row of an owner up to a `seq`, as a query of the columns. */
export const lastUpTo = (sql: SqlClient, table: Table, owner: string, seq: number, columns: string): Fragment => {
  const { offsets, rows } = tables[table]
  const start = sql`SELECT o.seq FROM ${sql.literal(offsets)} o WHERE o.owner = h.owner AND o.number = ${offsetEvery} + COALESCE((
    SELECT p.number FROM ${sql.literal(offsets)} p WHERE p.owner = h.owner AND p.seq <= ${seq} ORDER BY p.number DESC LIMIT 1), 0)`
  return sql`${walk(sql, table, owner, start, sql`w.seq > ${seq}`)}
    SELECT ${sql.literal(columns)} FROM walk w CROSS JOIN ${sql.literal(`${rows} ${table} ON ${table}.seq = w.seq`)} WHERE w.seq <= ${seq}`
}

/** How many records a tenant has, which is the number of its newest; `tenant` is an expression of SQL. */
export const recordsOf = (tenant: string): string =>
  `COALESCE((SELECT h.total FROM ${tables.r.heads} h WHERE h.id = ${tenant}), 0)`
