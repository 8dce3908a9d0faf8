/**
 * The rollup lag, also called the tail: a tenant's records after the watermark. The rollups sum the records up to the watermark. A reader adds the
 * tail to the rollups in one statement. A long tail is folded into the rollups in the transaction that moves the watermark. Many records of a caller
 * then become one row in each rollup.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Context } from "effect"
import { tables } from "./RowLinks.ts"
import { withDimensions } from "./Dimensions.ts"

/**
 * The length at which a tail is folded. Each record in a tail costs a reader a microsecond or two. After a batch, a tail can exceed this
 * length by the number of calls that the tenant settled in the batch.
 */
export class RollupLagMax extends Context.Reference<RollupLagMax>()("tollgate/ledger/TailMax", {
  defaultValue: () => 256
}) {}

/**
 * The corresponding length for a tenant with calls that another tenant paid for. It is smaller because a query for a team's total reads the tails of
 * all members.
 */
export const pooledMax = 32

/** A tenant's tail, as the writer caches it. */
export interface Tail {
  /** The number of the last record that the rollups include; 0 if they include none. */
  readonly watermark: number
  readonly pooled: boolean
}

const watermarkOf = (tenant: string): string =>
  `COALESCE((SELECT number FROM tollgate_usage_watermarks WHERE tenant_id = ${tenant}), 0)`

const pooledOf = (tenant: string): string => `EXISTS (
      SELECT 1 FROM tollgate_usage_dimensions d WHERE d.tenant_id = ${tenant} AND d.billing_source_tenant_id <> d.tenant_id
    )`

/**
 * Builds two SQL columns for a tenant, given as an SQL expression: its `watermark`, and whether another tenant has ever paid for one of its calls
 * (`pooled`).
 */
export const tailColumns = (tenant: string): string =>
  `${watermarkOf(tenant)} AS watermark, ${pooledOf(tenant)} AS pooled`

/** Selects the record count, the head and the tail columns of each tenant in a JSON array. */
export const selectTenants = `SELECT t.value AS tenant_id, COALESCE(h.total, 0) AS records, h.owner, h.newest,
    ${tailColumns("t.value")}
  FROM json_each(?) t LEFT JOIN ${tables.r.heads} h ON h.id = t.value`

export interface TenantRow {
  readonly tenant_id: string
  readonly watermark: number
  readonly records: number
  readonly owner: number | null
  readonly newest: number | null
  readonly pooled: number
}

/** Selects the records `r` in the tails of tenants. `tenants` is a query that returns their ids as `id`. */
export const tailRecords = (tenants: string): string => `${before}${tenants}${behind}`

/** Selects the records of `tailRecords` together with their dimensions `d`. */
export const tails = (tenants: string): string => `${tailRecords(tenants)} ${withDimensions}`

/** Works like `tails`, with fragments. */
export const tailsOf = (sql: SqlClient, tenants: Fragment): Fragment =>
  sql`${sql.literal(before)}${tenants}${sql.literal(`${behind} ${withDimensions}`)}`

/**
 * Selects the tails of all tenants with calls that this account made or paid for. The query walks the index from tenant to tenant, because each
 * tenant can have many dimensions.
 */
export const tailsWith = (sql: SqlClient, part: "account_id" | "billing_account_id", account: string): Fragment => {
  const next = (behind: string) => sql`SELECT tenant_id FROM tollgate_usage_dimensions
    WHERE ${sql.literal(part)} = ${account} ${sql.literal(behind)} ORDER BY tenant_id LIMIT 1`
  return tailsOf(
    sql,
    sql`WITH RECURSIVE tenants (id) AS (
      SELECT (${next("")})
      UNION ALL SELECT (${next("AND tenant_id > id")}) FROM tenants WHERE id IS NOT NULL
    ) SELECT id FROM tenants WHERE id IS NOT NULL`
  )
}

const before = `(WITH RECURSIVE tail (seq, previous, number, watermark) AS (
    SELECT r.seq, r.previous, r.number, t.watermark FROM (SELECT id, ${watermarkOf("id")} AS watermark FROM (`

const behind = `)) t
      CROSS JOIN ${tables.r.heads} h ON h.id = t.id
      CROSS JOIN tollgate_usage_records r ON r.seq = h.newest AND r.number > t.watermark
    UNION ALL SELECT r.seq, r.previous, r.number, t.watermark FROM tail t
      CROSS JOIN tollgate_usage_records r ON r.seq = t.previous AND r.number > t.watermark
  ) SELECT seq FROM tail) t CROSS JOIN tollgate_usage_records r ON r.seq = t.seq`
