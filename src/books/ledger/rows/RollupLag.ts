/**
 * How far the rollups are behind. Those of a tenant hold its records up to a number, its watermark; what comes after is its tail. A reader
 * adds the tail to what the rollups say, in one statement. A tail is folded into the rollups when it is long enough, in the transaction that
 * moves the watermark: so many records of one caller are then one row of each rollup.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Context } from "effect"
import { tables } from "./RowLinks.ts"
import { withDimensions } from "./Dimensions.ts"

/**
 * From how many records on a tail is folded. It costs a reader a microsecond or two for each. A batch may leave a tail longer by what the
 * tenant settled in it.
 */
export class RollupLagMax extends Context.Reference<RollupLagMax>()("tollgate/ledger/TailMax", {
  defaultValue: () => 256
}) {}

/** The same for a tenant whose calls another ever paid. A query for a team's total reads the tails of all members, so theirs are shorter. */
export const pooledMax = 32

/** The writer's knowledge of a tenant's tail. */
export interface Tail {
  /** The number of the last record that the rollups hold. */
  readonly watermark: number
  readonly pooled: boolean
}

const watermarkOf = (tenant: string): string =>
  `COALESCE((SELECT number FROM tollgate_usage_watermarks WHERE tenant_id = ${tenant}), 0)`

const pooledOf = (tenant: string): string => `EXISTS (
      SELECT 1 FROM tollgate_usage_dimensions d WHERE d.tenant_id = ${tenant} AND d.billing_source_tenant_id <> d.tenant_id
    )`

/** Of a tenant, an expression of SQL: its `watermark`, and whether another ever paid a call of it (`pooled`). */
export const tailColumns = (tenant: string): string =>
  `${watermarkOf(tenant)} AS watermark, ${pooledOf(tenant)} AS pooled`

/** Of each tenant of a JSON array: its records and their head, and its tail. */
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

/** The tails of tenants: their records `r`. `tenants` is a query that answers their ids as `id`. */
export const tailRecords = (tenants: string): string => `${before}${tenants}${behind}`

/** The same, each with its dimensions `d`. */
export const tails = (tenants: string): string => `${tailRecords(tenants)} ${withDimensions}`

/** `tails` for a reader's statement. */
export const tailsOf = (sql: SqlClient, tenants: Fragment): Fragment =>
  sql`${sql.literal(before)}${tenants}${sql.literal(`${behind} ${withDimensions}`)}`

/**
 * The tails of all tenants in whose calls an account has this part: from one tenant to the next by index, since there may be many
 * dimensions of each.
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
