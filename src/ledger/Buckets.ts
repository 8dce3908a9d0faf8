/** Which rows of an account, or a tenant, lie where: in which buckets of rows it has any, and with which row each of those begins. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { Range } from "../kernel/Pieces.ts"

/** Rows of usage and ledger are found by `seq >> bucketShift` first: an insert then touches only the newest pages of an index. */
export const bucketShift = 16
const bucketSize = 2 ** bucketShift

export const bucketOf = (seq: number): number => Math.floor(seq / bucketSize)

export interface Bucket<Row> {
  readonly key: string
  readonly bucket: number
  readonly first: Row
}

/**
 * The buckets that these rows, in their order behind `before`, begin for their keys. `known`: the newest bucket of each key, as far as it
 * is known; what begins now is put there.
 */
export const bucketsBegun = <Row>(
  known: Map<string, number>,
  before: number,
  rows: ReadonlyArray<Row>,
  keyOf: (row: Row) => string
): ReadonlyArray<Bucket<Row>> => {
  const begun: Array<Bucket<Row>> = []
  for (let i = 0; i < rows.length; i++) {
    const first = rows[i]!
    const bucket = bucketOf(before + 1 + i)
    const key = keyOf(first)
    if (known.get(key) === bucket) continue
    known.set(key, bucket)
    begun.push({ key, bucket, first })
  }
  return begun
}

/**
 * Joins the records `r`, or the entries `e`, of a bucket `b`. The expression is the index's own, to the letter, and `+` takes the column's affinity from the
 * bucket: without either, SQLite scans the table instead.
 */
export const inBucketOf = (row: "r" | "e") => `${row}.seq >> ${bucketShift} = +b.bucket`
export const inBucket = inBucketOf("r")

/** `tollgate_usage_records r`, a tenant's of a range of numbers: through the buckets, since the index begins with them. */
export const recordsAmong = (sql: SqlClient, tenant: string, { from, to }: Range, beside = ""): Fragment =>
  sql`tollgate_usage_buckets b
    CROSS JOIN tollgate_usage_records r
      ON ${sql.literal(inBucket)} AND r.tenant_id = b.tenant_id AND r.number >= ${from} AND r.number < ${to}
    ${sql.literal(beside)}
    WHERE b.tenant_id = ${tenant} AND b.first_number < ${to} AND b.bucket >= COALESCE((
      SELECT bucket FROM tollgate_usage_buckets WHERE tenant_id = ${tenant} AND first_number <= ${from}
      ORDER BY bucket DESC LIMIT 1), 0)`

/** How many records a tenant has, which is the number of its newest; `tenant` is an expression of SQL. */
export const recordsOf = (tenant: string): string => `COALESCE((
    SELECT r.number FROM tollgate_usage_buckets b CROSS JOIN tollgate_usage_records r ON ${inBucket} AND r.tenant_id = b.tenant_id
    WHERE b.tenant_id = ${tenant} ORDER BY b.bucket DESC, r.number DESC LIMIT 1
  ), 0)`
