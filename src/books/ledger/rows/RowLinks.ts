/**
 * Links each account's entries and each tenant's records. Each row points to the previous one (`previous`). An account's newest entry is stored with
 * its amounts, and a tenant's newest record in `tollgate_usage_heads`. Every 64th row is in the offsets. Therefore, a charge does not update an index
 * by account, which would cost a random page each time. A range of numbers is read backwards from the first offset after it, or from the newest row.
 * A page at any depth takes at most 64 extra steps.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { Range } from "../../../kernel/Pieces.ts"

/** Every row with a number divisible by this has an offset. */
export const offsetEvery = 64

/** An owner's newest row, and the owner's number in tables that change often. */
export interface Head {
  readonly owner: number
  /** `null` before the first row. */
  newest: number | null
  /** The time of an account's newest entry. Used only with concurrent writers. */
  readonly booked_at?: number
}

export interface Linked<Row> {
  readonly seq: number
  readonly row: Row
  readonly previous: number | null
  readonly owner: number
}

/** Links each row to the owner's previous row and updates the head. `seqs[i]` is the `seq` of `rows[i]`. */
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

export const offsetsOf = <Row extends { readonly number: number }>(
  links: ReadonlyArray<Linked<Row>>
): ReadonlyArray<Linked<Row>> => links.filter(({ row }) => row.number % offsetEvery === 0)

// ---- reading ------------------------------------------------------------------------------------------------------------

/** The tables of usage records (`r`) and entries (`e`). A head contains the owner's `id` and number, the row count `total`, and the newest row. */
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
 * Walks an owner's rows backwards as long as `more` holds for the row `w`. The walk begins at the row `start` (an SQL expression of the head `h`), or
 * at the newest row if `start` is null.
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

/** Selects a tenant's records in a range of numbers, as `tollgate_usage_records r`. `beside` is SQL for further joins. */
export const recordsAmong = (sql: SqlClient, tenant: string, range: Range, beside = ""): Fragment =>
  among(sql, "r", tenant, range, beside)

/** Selects an account's entries in a range of numbers, as `tollgate_ledger_entries e`. `beside` is SQL for further joins. */
export const entriesAmong = (sql: SqlClient, account: string, range: Range, beside = ""): Fragment =>
  among(sql, "e", account, range, beside)

/** Selects columns of an owner's last row up to a `seq`. */
export const lastUpTo = (sql: SqlClient, table: Table, owner: string, seq: number, columns: string): Fragment => {
  const { offsets, rows } = tables[table]
  const start = sql`SELECT o.seq FROM ${sql.literal(offsets)} o WHERE o.owner = h.owner AND o.number = ${offsetEvery} + COALESCE((
    SELECT p.number FROM ${sql.literal(offsets)} p WHERE p.owner = h.owner AND p.seq <= ${seq} ORDER BY p.number DESC LIMIT 1), 0)`
  return sql`${walk(sql, table, owner, start, sql`w.seq > ${seq}`)}
    SELECT ${sql.literal(columns)} FROM walk w CROSS JOIN ${sql.literal(`${rows} ${table} ON ${table}.seq = w.seq`)} WHERE w.seq <= ${seq}`
}

/** Builds an SQL expression for a tenant's record count. `tenant` is also an SQL expression. */
export const recordsOf = (tenant: string): string =>
  `COALESCE((SELECT h.total FROM ${tables.r.heads} h WHERE h.id = ${tenant}), 0)`
