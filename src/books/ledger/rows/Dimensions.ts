/**
 * Stores each combination of call properties once and refers to it by number. The writer caches the numbers by the identity of `Dimensions` objects.
 */
import { LabelBound } from "./LabelBound.ts"
import { all, queryOf, insert } from "./SqlEffect.ts"
import type { SqlSteps } from "./SqlEffect.ts"
import type * as Books from "../rules/Books.ts"
import type { Dimensions } from "../rules/Transaction.ts"

/** Limits the label combinations that this process stores. */
const bound = new LabelBound()

export type NumberOf = (dimensions: Dimensions) => number

/** The numbers that concurrent writers share, and a batched lookup. */
export interface Shared {
  readonly numbers: WeakMap<Dimensions, number>
  readonly select: (rows: ReadonlyArray<ReadonlyArray<string>>) => SqlSteps<ReadonlyArray<number>>
}

/** Stores a batch's new dimensions, and returns a function that returns the number of any of its dimensions. */
export function* numberDimensions(
  written: Books.Draft,
  numbers: WeakMap<Dimensions, number>,
  shared: Shared | undefined
): SqlSteps<NumberOf> {
  // The key is the content, because distinct objects can be equal.
  const missing = new Map<string, { readonly row: ReadonlyArray<string>; readonly alike: Set<Dimensions> }>()
  const look = ({ at, dimensions }: { readonly at: number; readonly dimensions: Dimensions }) => {
    if (numbers.has(dimensions)) return
    const number = shared?.numbers.get(dimensions)
    if (number !== undefined) return void numbers.set(dimensions, number)
    const row = dimensionsRow(bound.bounded(dimensions, at))
    const text = JSON.stringify(row)
    const found = missing.get(text)
    if (found === undefined) missing.set(text, { row, alike: new Set([dimensions]) })
    else found.alike.add(dimensions)
  }
  for (const reservation of written.reserved.values()) look(reservation)
  for (const record of written.usage) look(record)
  const rows = [...missing.values()].map(({ row }) => row)
  yield* insert("tollgate_usage_dimensions", dimensionColumns, rows, "DO NOTHING")
  const found = rows.length === 0 ? [] : yield* (shared?.select ?? selectEach)(rows)
  for (const [i, { alike }] of [...missing.values()].entries())
    for (const dimensions of alike) numbers.set(dimensions, found[i]!)
  return (dimensions) => numbers.get(dimensions)!
}

function* selectEach(rows: ReadonlyArray<ReadonlyArray<string>>): SqlSteps<ReadonlyArray<number>> {
  const found = yield* all(rows.map((row) => queryOf(selectNumber, row)))
  return found.map(([row]) => row.number as number)
}

/** Joins the dimensions `d` to a reservation or record `r`. `CROSS JOIN` makes SQLite read `r` first. */
export const withDimensions = "CROSS JOIN tollgate_usage_dimensions d ON d.number = r.dimensions"

export const dimensionColumns = [
  "account_id",
  "tenant_id",
  "application_id",
  "usage_type",
  "endpoint",
  "model",
  "provider",
  "price",
  "billing_account_id",
  "billing_source_tenant_id",
  "billing_source_kind",
  "billing_source_why",
  "run_id",
  "tags",
  "end_user"
] as const

/** Converts dimensions to a row. Absent values become empty strings, because null values would be distinct in the unique index. */
const dimensionsRow = (d: Dimensions): ReadonlyArray<string> => dimensionColumns.map((column) => d[column] ?? "")

const selectNumber = `SELECT number FROM tollgate_usage_dimensions
  WHERE ${dimensionColumns.map((column) => `${column} = ?`).join(" AND ")}`

/** Selects the dimensions with these numbers, on PostgreSQL. The rows never change. */
export const selectDimensions = "SELECT * FROM tollgate_usage_dimensions WHERE number = ANY(?::bigint[])"

export interface DimensionsRow extends Dimensions {
  readonly number: number
}

export const dimensionsOf = (row: DimensionsRow): Dimensions => ({
  account_id: row.account_id,
  tenant_id: row.tenant_id,
  application_id: row.application_id === "" ? null : row.application_id,
  usage_type: row.usage_type,
  endpoint: row.endpoint,
  model: row.model,
  provider: row.provider,
  price: row.price === "" ? undefined : row.price,
  billing_account_id: row.billing_account_id,
  billing_source_tenant_id: row.billing_source_tenant_id,
  billing_source_kind: row.billing_source_kind,
  billing_source_why: row.billing_source_why,
  ...(row.run_id !== "" && { run_id: row.run_id }),
  ...(row.tags !== "" && { tags: row.tags }),
  ...(row.end_user !== "" && { end_user: row.end_user })
})
