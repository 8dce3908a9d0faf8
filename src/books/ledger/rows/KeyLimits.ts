/**
 * Spending limits of API keys: one row per limited key, updated in the transactions that reserve and settle its calls. Keys without a limit
 * have no row.
 */
import { monthOf } from "../../../kernel/Moment.ts"
import { insert, query, run } from "./SqlEffect.ts"
import type { SqlSteps } from "./SqlEffect.ts"
import type { Spending } from "../rules/Books.ts"
import { tails } from "./RollupLag.ts"
import type { Limit, LimitPeriod } from "../rules/Transaction.ts"

const columns = ["application_id", "tenant_id", "amount", "period", "start", "spent", "reserved", "ceiling"] as const

const selection = `application_id, tenant_id, CAST(amount AS TEXT) AS amount, period, start, CAST(spent AS TEXT) AS spent,
  CAST(reserved AS TEXT) AS reserved, CAST(ceiling AS TEXT) AS ceiling`

export interface LimitRow {
  readonly application_id: string
  readonly tenant_id: string
  readonly amount: string
  readonly period: LimitPeriod
  readonly start: number
  readonly spent: string
  readonly reserved: string
  readonly ceiling: string
}

export const limitOf = (row: LimitRow): Limit => ({
  application_id: row.application_id,
  tenant_id: row.tenant_id,
  amount: BigInt(row.amount),
  period: row.period,
  start: row.start,
  spent: BigInt(row.spent),
  reserved: BigInt(row.reserved),
  ceiling: BigInt(row.ceiling)
})

const rowOf = (limit: Limit): ReadonlyArray<unknown> => columns.map((column) => limit[column])

export const selectAmong = `SELECT ${selection} FROM tollgate_ledger_limits WHERE application_id IN (SELECT value FROM json_each(?))`

/** The limits of these applications. `locked`: locks the rows in order, until the batch commits. */
export function* load(applications: Iterable<string>, locked: boolean): SqlSteps<ReadonlyArray<Limit>> {
  const text = locked ? `${selectAmong} ORDER BY application_id FOR UPDATE` : selectAmong
  return (yield* query(text, [JSON.stringify([...applications])])).map(limitOf)
}

/** The charges of an application since `start`, as an SQL expression. Its parameters are `spentParams`. */
export const spentSince = (start: string): string => `(
    COALESCE((SELECT SUM(u.cost) FROM tollgate_usage_by_tenant u
      WHERE u.tenant_id = ? AND u.start >= ${start} AND u.application_id = ?), 0) +
    COALESCE((SELECT SUM(r.cost) FROM ${tails("SELECT ? AS id")} WHERE r.at >= ${start} AND d.application_id = ?), 0))`

export const spentParams = (tenant: string, application: string) => [tenant, application, tenant, application]

export const reservedOf = `(SELECT COALESCE(SUM(r.amount), 0) FROM tollgate_ledger_reservations r
    CROSS JOIN tollgate_usage_dimensions d ON d.number = r.dimensions WHERE d.application_id = ?)`

/** The charges of an application, in total and in the month of `at`, and its reservations. */
export function* spendingOf(tenant: string, application: string, at: number): SqlSteps<Spending> {
  const params = spentParams(tenant, application)
  const [row] = yield* query(
    `SELECT CAST(${spentSince("0")} AS TEXT) AS total, CAST(${spentSince(String(monthOf(at)))} AS TEXT) AS month,
      CAST(${reservedOf} AS TEXT) AS reserved`,
    [...params, ...params, application]
  )
  return { total: BigInt(row.total), month: BigInt(row.month), reserved: BigInt(row.reserved) }
}

/** Writes the changed limits. `undefined` removes a limit. */
export function* write(limits: ReadonlyMap<string, Limit | undefined>): SqlSteps<void> {
  if (limits.size === 0) return
  const rows: Array<ReadonlyArray<unknown>> = []
  const gone: Array<string> = []
  for (const [application, limit] of limits) {
    if (limit === undefined) gone.push(application)
    else rows.push(rowOf(limit))
  }
  yield* insert("tollgate_ledger_limits", columns, rows, replaced)
  if (gone.length > 0) yield* run(deleteAmong, [JSON.stringify(gone)])
}

const replaced = `(application_id) DO UPDATE SET ${columns
  .slice(1)
  .map((column) => `${column} = excluded.${column}`)
  .join(", ")}`

const deleteAmong = "DELETE FROM tollgate_ledger_limits WHERE application_id IN (SELECT value FROM json_each(?))"
