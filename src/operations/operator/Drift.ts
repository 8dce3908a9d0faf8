/** Compares a vendor's invoice with our charges, by UTC day and model. */
import { toDay } from "../../kernel/Moment.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { DailySum } from "../../books/ledger/totals/ProviderTotals.ts"
import type { Invoice, InvoiceLine } from "./Invoice.ts"
import type { Drift } from "./Upstream.ts"

interface Row {
  readonly day: string
  readonly model: string
  readonly theirs: Nano
  readonly ours: Nano
  readonly difference: Nano
  readonly requests: number
  readonly quantity: string | null
}

/**
 * Returns the comparison. `vendorNameOf` returns the vendor's name for a model. The result contains at most `rowsMax` rows, but the totals cover all
 * rows.
 */
export const driftOf = (
  { bad_lines, bad_lines_total, columns, lines }: Invoice,
  sums: ReadonlyArray<DailySum>,
  vendorNameOf: (sum: DailySum) => string,
  rowsMax: number
): Omit<Drift, "from" | "to"> => {
  const rows = compare(lines, sums, vendorNameOf)
  const theirs = rows.reduce((sum, row) => sum + row.theirs, 0n)
  const ours = rows.reduce((sum, row) => sum + row.ours, 0n)
  return {
    columns,
    rows: rows.slice(0, rowsMax),
    totals: { theirs, ours, difference: theirs - ours },
    bad_lines,
    bad_lines_total,
    truncated: rows.length > rowsMax
  }
}

/** Compares the invoice's lines with our charges. Sorts the rows by day, then by the size of the difference, largest first. */
const compare = (
  lines: ReadonlyArray<InvoiceLine>,
  sums: ReadonlyArray<DailySum>,
  vendorNameOf: (sum: DailySum) => string
): ReadonlyArray<Row> => {
  const keyOf = (day: string, model: string): string => `${day} ${model.toLowerCase()}`
  const rows = new Map<string, Row>()
  for (const { amount, day, model, quantity } of lines) {
    const before = rows.get(keyOf(day, model))
    const theirs = (before?.theirs ?? 0n) + amount
    const row = { day, model: before?.model ?? model, theirs, ours: 0n, difference: theirs, requests: 0, quantity }
    rows.set(keyOf(day, model), row)
  }
  const invoiced = new Set(lines.map(({ model }) => model.toLowerCase()))
  for (const sum of sums) {
    const named = vendorNameOf(sum)
    // Some vendors bill a model under our name.
    const model = invoiced.has(named.toLowerCase()) || !invoiced.has(sum.model.toLowerCase()) ? named : sum.model
    const day = toDay(sum.day)
    const before = rows.get(keyOf(day, model))
    const theirs = before?.theirs ?? 0n
    const ours = (before?.ours ?? 0n) + sum.charged
    rows.set(keyOf(day, model), {
      day,
      model: before?.model ?? model,
      theirs,
      ours,
      difference: theirs - ours,
      requests: (before?.requests ?? 0) + sum.requests,
      quantity: before?.quantity ?? null
    })
  }
  return [...rows.values()].toSorted(
    (a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0) || largerFirst(a.difference, b.difference)
  )
}

const largerFirst = (a: Nano, b: Nano): number => {
  const [one, other] = [a < 0n ? -a : a, b < 0n ? -b : b]
  return one > other ? -1 : one < other ? 1 : 0
}
