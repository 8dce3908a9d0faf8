/** Which rows of an account, or a tenant, lie where: of each bucket of rows, the first and last of theirs. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { Range } from "../kernel/Pieces.ts"

/** Rows of usage and ledger are found by `seq >> bucketShift` first: an insert then touches only the newest pages of an index. */
export const bucketShift = 16
const bucketSize = 2 ** bucketShift

interface Bucket<Row> {
  readonly key: string
  readonly bucket: number
  readonly first: Row
  last: Row
}

/** The first and last of the rows that fall into each (key, bucket), in the order of the rows. */
export const buckets = <Row>(before: number, rows: ReadonlyArray<Row>, keyOf: (row: Row) => string) => {
  const found = new Map<string, Bucket<Row>>()
  let last: Bucket<Row> | undefined
  for (const [i, row] of rows.entries()) {
    const bucket = Math.floor((before + 1 + i) / bucketSize)
    const key = keyOf(row)
    // Mostly a row follows one of its own.
    if (last?.key !== key || last.bucket !== bucket) {
      const name = `${bucket}/${key}`
      last = found.get(name)
      if (last === undefined) found.set(name, (last = { key, bucket, first: row, last: row }))
    }
    last.last = row
  }
  return [...found.values()]
}

/**
 * Joins the records `r` of a bucket `b`. The expression is the index's own, to the letter, and `+` takes the column's affinity from the
 * bucket: without either, SQLite scans the table instead.
 */
export const inBucket = `r.seq >> ${bucketShift} = +b.bucket`

/** `tollgate_usage_records r`, a tenant's of a range of numbers: through the buckets, since the index begins with them. */
export const recordsAmong = (sql: SqlClient, tenant: string, { from, to }: Range, beside = ""): Fragment =>
  sql`tollgate_usage_buckets b
    CROSS JOIN tollgate_usage_records r
      ON ${sql.literal(inBucket)} AND r.tenant_id = b.tenant_id AND r.number >= ${from} AND r.number < ${to}
    ${sql.literal(beside)}
    WHERE b.tenant_id = ${tenant} AND b.first_number < ${to} AND b.last_number >= ${from}`
