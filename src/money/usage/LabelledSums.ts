/** Computes rollups filtered by labels. The sums come from records, because rollups contain no labels. */
import { Effect } from "effect"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { allInSlices } from "../../kernel/Pieces.ts"
import { dimensionsBy, dimensionsPaid, readRangesOf, recordCondition } from "./Filtered.ts"
import type { Filter, LabelFilter, Parts } from "./Filtered.ts"
import { dayOfRecord, periodOf, pointOf, recordColumns, sumSelection, together } from "./Points.ts"
import type { PointRow } from "./Points.ts"
import type { Paid, PaidAsked, SumRow } from "./Sums.ts"
import type { DataPoint, RollupName, Totals } from "./Usage.ts"
import { wholeDays } from "./Window.ts"
import type { Window } from "./Window.ts"

interface PeriodQuery {
  readonly tenant_id: TenantId
  readonly rollup: RollupName
  readonly window: Window
  readonly filter: Filter
}

interface Row extends PointRow {
  readonly account_id: AccountId
}

/** Sums a tenant's records with these dimensions by account and period. */
const read = Effect.fnUntraced(function* (
  parts: Parts,
  tenant: TenantId,
  { rollup, window }: Pick<PeriodQuery, "rollup" | "window">,
  dimensions: ReadonlySet<number>
) {
  const { numbers, sql } = parts
  const range = yield* numbers.range(tenant, wholeDays(window))
  const rows = yield* allInSlices(
    yield* readRangesOf(parts, tenant, range, dimensions),
    (piece) => sql<Row>`SELECT account_id, ${periodOf(sql, rollup)} AS timestamp, ${sql.literal(sumSelection)} FROM (
        SELECT d.account_id, ${sql.literal(dayOfRecord)}, ${sql.literal(recordColumns)}
        FROM ${numbers.described(tenant, piece)}
        AND ${recordCondition(sql, piece, dimensions)}
      ) sums GROUP BY 1, 2`
  )
  return rows.flat()
})

export const rollup = Effect.fnUntraced(function* (parts: Parts, request: PeriodQuery) {
  const dimensions = yield* dimensionsBy(parts.sql, request.tenant_id, request.filter)
  return together((yield* read(parts, request.tenant_id, request, dimensions)).map(pointOf))
}, Effect.orDie)

/** Sums a tenant's calls by model and endpoint, in a window exact to the millisecond. */
export const summary = Effect.fnUntraced(function* (parts: Parts, tenant: TenantId, window: Window, filter: Filter) {
  const { numbers, sql } = parts
  const dimensions = yield* dimensionsBy(sql, tenant, filter)
  if (dimensions.size === 0) return []
  const places = yield* readRangesOf(parts, tenant, yield* numbers.range(tenant, window), dimensions)
  const rows = yield* allInSlices(
    places,
    (piece) => sql<SumRow>`SELECT model, endpoint, ${sql.literal(sumSelection)} FROM (
        SELECT d.model, d.endpoint, ${sql.literal(recordColumns)} FROM ${numbers.described(tenant, piece)}
        AND ${recordCondition(sql, piece, dimensions)}
      ) sums GROUP BY model, endpoint`
  )
  return rows.flat()
})

/** Sums the calls that a tenant's billing account paid for, by account and period, from the records of each tenant that made them. */
export const paid = Effect.fnUntraced(function* (parts: Parts, request: PaidAsked, labels: LabelFilter) {
  const { named, tenant_id, viewer } = request
  const rows = yield* Effect.forEach(yield* dimensionsPaid(parts.sql, tenant_id, labels), ([tenant, dimensions]) =>
    read(parts, tenant, request, dimensions)
  )
  const points = new Map<AccountId, ReadonlyArray<DataPoint>>()
  for (const [account, own] of groupByKey(rows.flat(), ({ account_id }) => account_id))
    points.set(account, together(own.map(pointOf)))
  return paidOf(points, viewer, named)
}, Effect.orDie)

const groupByKey = <Key, Row>(
  rows: ReadonlyArray<Row>,
  keyOf: (row: Row) => Key
): ReadonlyMap<Key, ReadonlyArray<Row>> => {
  const groups = new Map<Key, Array<Row>>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group === undefined) groups.set(keyOf(row), [row])
    else group.push(row)
  }
  return groups
}

const paidOf = (
  points: ReadonlyMap<AccountId, ReadonlyArray<DataPoint>>,
  viewer: AccountId,
  named: PaidAsked["named"]
): Paid => {
  const callers = [...points].map(([account_id, own]) => ({ account_id, totals: totalOf(own) }))
  const dearest = callers.toSorted((a, b) =>
    a.totals.total_cost === b.totals.total_cost ? 0 : a.totals.total_cost > b.totals.total_cost ? -1 : 1
  )
  const chosen = "most" in named ? dearest.slice(0, named.most).map(({ account_id }) => account_id) : named
  return {
    callers,
    viewer: points.get(viewer) ?? [],
    others: together([...points].flatMap(([account, own]) => (account === viewer ? [] : own))),
    named: new Map(chosen.map((account) => [account, points.get(account) ?? []]))
  }
}

const totalOf = (points: ReadonlyArray<DataPoint>): Totals => ({
  total_requests: points.reduce((sum, point) => sum + point.total_requests, 0),
  total_tokens: points.reduce((sum, point) => sum + point.total_tokens, 0),
  total_cost: points.reduce((sum, point) => sum + point.total_cost, 0n)
})
