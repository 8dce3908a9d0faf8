/**
 * Totals over all tenants, by UTC day, provider and model. They include the records up to a row called the end, and a reader adds the later records
 * (`money/usage/Daily`). `ProviderTotalsIndexer` adds records after the charge, in the transaction that moves the end. The transaction fails if the
 * end has changed since it was read, so only one of two nodes succeeds.
 *
 * - Batches fold only rollups that belong to tenants and accounts. All tenants share the rows of provider totals. If batches folded them, the batches
 *   of all nodes would wait for each other.
 * - The run totals (`Totals`) are per tenant, but most tenants of a large service have fewer records than one run.
 * - The end is a row instead of a finished day, because no clock can prove that a day is over. A node's clock can be slow, a batch commits after its
 *   rows are dated, and the sandbox moves its clock. A late record's row is after the end, and the record is added to the day of its time. Each
 *   record is added once, so the totals never need correcting. `verify` still compares them.
 * - The end must not pass a row that might still be committed (`SafeHorizon`). It must not pass the last existing row either: after a copy to the
 *   other engine, the next row gets the number after the last row.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { day, toDay } from "../../../kernel/Moment.ts"
import type { Nano } from "../../../kernel/Money.ts"
import { inSlices } from "../../../kernel/Pieces.ts"
import type { Range } from "../../../kernel/Pieces.ts"
import { withDimensions } from "../rows/Dimensions.ts"
import type { CheckRow } from "../rules/Check.ts"
import type { Statement } from "../rules/Transaction.ts"

export interface DailySum {
  /** The start of the UTC day. */
  readonly day: number
  readonly provider: string
  readonly model: string
  readonly requests: number
  readonly failures: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  /** The charged amount, and the amount that balances could not cover, in nano-USD. */
  readonly charged: Nano
  readonly uncollected: Nano
}

/** The days from `first` to `last`, inclusive. A day is given by its start. */
export interface Days {
  readonly first: number
  readonly last: number
}

/** The SQL expression over records for each measure. */
const measures = {
  requests: "COUNT(*)",
  successes: "SUM(r.success)",
  prompt_tokens: "SUM(r.prompt_tokens)",
  completion_tokens: "SUM(r.completion_tokens)",
  units: "SUM(r.units)",
  cost: "SUM(r.cost)",
  uncollected: "SUM(r.uncollected)"
} as const

/** Returns whether the measure is an amount. Amounts are read as text, because a sum can exceed the range of exact numbers. */
const isAmount = (measure: string): boolean => measure === "cost" || measure === "uncollected"

const columns = (expressionOf: (measure: keyof typeof measures) => string): string =>
  (Object.keys(measures) as ReadonlyArray<keyof typeof measures>).map(expressionOf).join(", ")

const asRead = (measure: string, expression: string): string =>
  isAmount(measure) ? `CAST(${expression} AS TEXT)` : expression

const keyOfRecord = `r.at - r.at % ${day}, d.provider, d.model`

type SumRow = readonly [
  day: number,
  provider: string,
  model: string,
  requests: number,
  successes: number,
  prompt_tokens: number,
  completion_tokens: number,
  units: number,
  cost: string,
  uncollected: string
]

const sumOf = ([day, provider, model, requests, successes, ...rest]: SumRow): DailySum => {
  const [prompt_tokens, completion_tokens, units, cost, uncollected] = rest
  return {
    day,
    provider,
    model,
    requests,
    failures: requests - successes,
    prompt_tokens,
    completion_tokens,
    units,
    charged: BigInt(cost),
    uncollected: BigInt(uncollected)
  }
}

// ---- reading ------------------------------------------------------------------------------------------------------------

const selectKept = `SELECT e.record, s.start, s.provider, s.model, ${columns((measure) => asRead(measure, `s.${measure}`))}
  FROM (SELECT COALESCE((SELECT record FROM tollgate_usage_by_provider_end), 0) AS record) e
    LEFT JOIN tollgate_usage_by_provider s ON s.start >= ? AND s.start <= ?`

/** Reads the last row that the totals include. */
export const endOf = (sql: SqlClient) =>
  Effect.map(
    sql<{ readonly record: number }>`SELECT COALESCE((SELECT record FROM tollgate_usage_by_provider_end), 0) AS record`,
    ([row]) => row!.record
  )

/** Reads the stored totals of these days, together with the end. */
export const storedTotals = (sql: SqlClient, { first, last }: Days) =>
  Effect.map(sql.unsafe(selectKept, [first, last]).values, (found) => {
    const rows = found as ReadonlyArray<ReadonlyArray<unknown>>
    return {
      end: rows[0]![0] as number,
      // If there are no totals, the join returns one row of nulls.
      sums: rows.filter(([, start]) => start !== null).map(([, ...row]) => sumOf(row as unknown as SumRow))
    }
  })

/** Finds the last existing row up to `most`. */
export const lastRow = (sql: SqlClient, most: number = Number.MAX_SAFE_INTEGER) =>
  Effect.map(
    sql<{
      readonly last: number
    }>`SELECT COALESCE(MAX(seq), 0) AS last FROM tollgate_usage_records WHERE seq <= ${most}`,
    ([row]) => row!.last
  )

/** Computes the totals of these days from the records in a range of rows. */
export const among = (sql: SqlClient, rows: Range, { first, last }: Days) =>
  Effect.suspend(() => {
    const found: Found = new Map()
    const read = ({ from, to }: Range) =>
      // Arrays cost the driver less than half as much as objects.
      Effect.map(sql.unsafe(selectAmong, [from, to, first, last + day]).values, (rows) => {
        for (const row of rows) put(found, sumOf(row as unknown as SumRow))
      })
    return Effect.map(inSlices(rows, read), () => [...found.values()])
  })

const selectAmong = `SELECT ${keyOfRecord}, ${columns((measure) => asRead(measure, measures[measure]))}
  FROM tollgate_usage_records r ${withDimensions}
  WHERE r.seq >= ? AND r.seq < ? AND r.at >= ? AND r.at < ? GROUP BY 1, 2, 3`

export const together = (sums: ReadonlyArray<DailySum>): ReadonlyArray<DailySum> => {
  const found: Found = new Map()
  for (const sum of sums) put(found, sum)
  return [...found.values()]
}

type Found = Map<string, DailySum>

const put = (found: Found, sum: DailySum): void => {
  const key = keyOf(sum)
  const before = found.get(key)
  found.set(key, before === undefined ? sum : plus(before, sum))
}

const keyOf = ({ day, model, provider }: DailySum): string => `${day} ${provider}\n${model}`

const plus = (sum: DailySum, more: DailySum): DailySum => ({
  ...sum,
  requests: sum.requests + more.requests,
  failures: sum.failures + more.failures,
  prompt_tokens: sum.prompt_tokens + more.prompt_tokens,
  completion_tokens: sum.completion_tokens + more.completion_tokens,
  units: sum.units + more.units,
  charged: sum.charged + more.charged,
  uncollected: sum.uncollected + more.uncollected
})

// ---- writing ------------------------------------------------------------------------------------------------------------

/** Builds the statements that add the records after `end` and up to the row `to`. They conflict if the end has changed. */
export const adding = (end: number, to: number): ReadonlyArray<Statement> => [
  {
    text: `INSERT INTO tollgate_usage_by_provider_end (id, record) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET record = excluded.record WHERE tollgate_usage_by_provider_end.record = ? RETURNING record`,
    params: [to, end],
    rows: 1
  },
  { text: add, params: [end, to] }
]

const add = `INSERT INTO tollgate_usage_by_provider (start, provider, model, ${columns((measure) => measure)})
  SELECT ${keyOfRecord}, ${columns((measure) => measures[measure])} FROM tollgate_usage_records r ${withDimensions}
    WHERE r.seq > ? AND r.seq <= ? GROUP BY 1, 2, 3
  ON CONFLICT (start, provider, model) DO UPDATE SET ${columns(
    (measure) => `${measure} = tollgate_usage_by_provider.${measure} + excluded.${measure}`
  )}`

// ---- checking -----------------------------------------------------------------------------------------------------------

const always: Days = { first: 0, last: 8.64e15 }

/** Finds totals that differ from the records up to the end. Those records never change, so the check works while more are added. */
export const faultsOf = Effect.fnUntraced(function* (sql: SqlClient) {
  const { end, sums } = yield* storedTotals(sql, always)
  const last = yield* lastRow(sql)
  const due = new Map((yield* among(sql, { from: 1, to: end + 1 }, always)).map((sum) => [keyOf(sum), sum]))
  const faults: Array<CheckRow> = []
  if (end > last) faults.push({ id: "the end", expected: `row ${last} or before`, found: `row ${end}` })
  const look = ({ day, model, provider }: DailySum, made: DailySum | undefined, sum: DailySum | undefined) => {
    if (made !== undefined && sum !== undefined && isSame(made, sum)) return
    faults.push({ id: `${toDay(day)}/${provider}/${model}`, expected: inWords(made), found: inWords(sum) })
  }
  for (const sum of sums) {
    look(sum, due.get(keyOf(sum)), sum)
    due.delete(keyOf(sum))
  }
  for (const made of due.values()) look(made, made, undefined)
  return faults
})

const isSame = (made: DailySum, sum: DailySum): boolean =>
  // Units can be fractions, and a floating-point sum depends on the order of its terms.
  Math.abs(sum.units - made.units) <= 1e-9 * (1 + Math.abs(made.units)) &&
  inWords({ ...made, units: 0 }) === inWords({ ...sum, units: 0 })

const inWords = (sum: DailySum | undefined): string =>
  sum === undefined
    ? "nothing"
    : `${sum.requests} calls, ${sum.failures} failed, ${sum.prompt_tokens} and ${sum.completion_tokens} tokens, ` +
      `${Number(sum.units.toPrecision(12))} units, ${sum.charged} and ${sum.uncollected} nano-USD`
