/**
 * Reads the stored reconciliations.
 *
 * Where the specification is silent:
 * - A period has at most 400 days and 10,000 rows of days and models. It omits the oldest days and rows beyond these limits.
 * - Differences are listed by day, newest first, and the largest of a day first. A page reads at most 31 days. A page can therefore be short or empty
 *   and still have a next page. A day that is compared again between two pages is read in its new state.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { toIso } from "../../kernel/Moment.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { turn } from "../../kernel/Pieces.ts"
import type { BillDrift } from "../ops/Gauges.ts"
import { ReconciliationNotFound } from "./Problems.ts"
import { coverageOf } from "./Reconciliation.ts"
import type {
  Cause,
  CauseSum,
  Compared,
  Difference,
  ReconciledDifference,
  ReconciliationDetail,
  ReconciliationLine,
  ReconciliationPeriod
} from "./Reconciliation.ts"

export interface DaysAsked {
  readonly vendor?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

export interface PeriodAsked extends DaysAsked {
  readonly vendor: string
}

export interface DifferencesAsked extends PeriodAsked {
  readonly cause?: Cause | undefined
  readonly model?: string | undefined
  /** The `next` of the previous page. */
  readonly before?: string | undefined
  readonly limit: number
}

/** Days are UTC days, and `from` and `to` are included. */
export interface StoredContract {
  /** Lists the days compared, newest first. */
  readonly list: (asked: DaysAsked) => Effect.Effect<{
    readonly reconciliations: ReadonlyArray<ReconciliationLine>
    readonly truncated: boolean
  }>
  readonly find: (vendor: string, day: string) => Effect.Effect<ReconciliationDetail, ReconciliationNotFound>
  /** Returns the vendor's days with the sums of each model, newest first. */
  readonly period: (asked: PeriodAsked) => Effect.Effect<ReconciliationPeriod>
  /** Returns a page of the vendor's stored differences. `next` is null on the last page. */
  readonly differences: (
    asked: DifferencesAsked
  ) => Effect.Effect<{ readonly records: ReadonlyArray<ReconciledDifference>; readonly next: string | null }>
  /** Returns each vendor's newest day, for the metrics. */
  readonly drifts: Effect.Effect<ReadonlyArray<BillDrift>>
}

const listMax = 400
const rowsMax = 10_000
/** The maximum number of days that a page reads. Each day's differences take up to a megabyte. */
const daysPerPage = 31

export const make = (sql: SqlClient): StoredContract => ({
  list: list(sql),
  find: find(sql),
  period: period(sql),
  differences: differences(sql),
  drifts: drifts(sql)
})

// ---- rows ---------------------------------------------------------------------------------------------------------------

interface DayRow {
  readonly vendor: string
  readonly day: string
  readonly reconciled_at: number
  readonly billed: string
  readonly expected: string
  readonly charged: string
  readonly causes: string
}

/** The stored form. Amounts are strings. */
type Stored<A> = { readonly [K in keyof A]: A[K] extends Nano ? string : A[K] }

const causesIn = (json: string): ReadonlyArray<CauseSum> =>
  (JSON.parse(json) as ReadonlyArray<Stored<CauseSum>>).map(({ amount, cause, lines }) => ({
    cause,
    amount: BigInt(amount),
    lines
  }))

const modelsIn = (json: string): ReadonlyArray<Omit<Compared, "day">> =>
  (JSON.parse(json) as ReadonlyArray<Stored<Compared>>).map(({ billed, charged, expected, model, requests }) => ({
    model,
    billed: BigInt(billed),
    expected: BigInt(expected),
    charged: BigInt(charged),
    requests
  }))

const differenceOf = (one: Stored<Difference>): Omit<ReconciledDifference, "day"> => ({
  model: one.model,
  kind: one.kind,
  cause: one.cause,
  amount: BigInt(one.amount),
  quantity: one.quantity,
  note: one.note,
  vendor_request: one.call,
  usage_id: one.usage_id
})

const differencesIn = (json: string) => JSON.parse(json) as ReadonlyArray<Stored<Difference>>

const lineOf = (row: DayRow): ReconciliationLine => {
  const [billed, expected] = [fromRow(row.billed), fromRow(row.expected)]
  const causes = causesIn(row.causes)
  return {
    vendor: row.vendor,
    day: row.day,
    reconciled_at: toIso(row.reconciled_at),
    billed,
    expected,
    charged: fromRow(row.charged),
    drift: billed - expected,
    coverage: coverageOf(billed, causes),
    causes
  }
}

const columns = `vendor, day, reconciled_at, CAST(billed AS TEXT) AS billed, CAST(expected AS TEXT) AS expected,
  CAST(charged AS TEXT) AS charged, causes`

const lastDay = "9999-12-31"

// ---- reading ------------------------------------------------------------------------------------------------------------

const list =
  (sql: SqlClient): StoredContract["list"] =>
  ({ from = "", to = lastDay, vendor }) =>
    Effect.map(
      Effect.orDie(
        vendor === undefined
          ? sql<DayRow>`SELECT ${sql.literal(columns)} FROM tollgate_reconciliation_days
              WHERE day >= ${from} AND day <= ${to} ORDER BY day DESC, vendor LIMIT ${listMax + 1}`
          : sql<DayRow>`SELECT ${sql.literal(columns)} FROM tollgate_reconciliation_days
              WHERE vendor = ${vendor} AND day >= ${from} AND day <= ${to} ORDER BY day DESC LIMIT ${listMax + 1}`
      ),
      (rows) => ({ reconciliations: rows.slice(0, listMax).map(lineOf), truncated: rows.length > listMax })
    )

const find =
  (sql: SqlClient): StoredContract["find"] =>
  (vendor, day) =>
    Effect.flatMap(
      Effect.orDie(sql<DayRow & { readonly models: string; readonly differences: string }>`
        SELECT ${sql.literal(columns)}, models, differences FROM tollgate_reconciliation_days
        WHERE vendor = ${vendor} AND day = ${day}`),
      ([row]) =>
        row === undefined
          ? new ReconciliationNotFound({ vendor, day })
          : Effect.succeed<ReconciliationDetail>({
              ...lineOf(row),
              models: modelsIn(row.models),
              differences: differencesIn(row.differences).map(differenceOf)
            })
    )

const period =
  (sql: SqlClient): StoredContract["period"] =>
  ({ from = "", to = lastDay, vendor }) =>
    Effect.map(
      Effect.orDie(sql<DayRow & { readonly models: string }>`
        SELECT ${sql.literal(columns)}, models FROM tollgate_reconciliation_days
        WHERE vendor = ${vendor} AND day >= ${from} AND day <= ${to} ORDER BY day DESC LIMIT ${listMax + 1}`),
      (found) => {
        const days = found.slice(0, listMax)
        const rows = days.flatMap(({ day, models }) => modelsIn(models).map((model) => ({ day, ...model })))
        return {
          days: days.map(lineOf),
          rows: rows.slice(0, rowsMax),
          truncated: found.length > listMax || rows.length > rowsMax
        }
      }
    )

/** A cursor states where the next page begins: the day and the position in it, such as `2027-01-31.17`. Any other text begins at the newest day. */
const placeOf = (before: string | undefined): { readonly day: string; readonly index: number } | undefined => {
  const [, day, index] = /^(\d{4}-\d{2}-\d{2})\.(\d{1,9})$/.exec(before ?? "") ?? []
  return day === undefined ? undefined : { day, index: Number(index) }
}

/** A position after all differences of a day. */
const endOfDay = 999_999_999

type Wanted = (one: Stored<Difference>) => boolean

/** Adds up to `limit` records of a day. Returns the next page's cursor if the day has more. */
const addFrom = (
  json: string,
  day: string,
  first: number,
  isWanted: Wanted,
  limit: number,
  records: Array<ReconciledDifference>
): string | undefined => {
  const found = differencesIn(json)
  for (let index = first; index < found.length; index++) {
    const one = found[index]!
    if (!isWanted(one)) continue
    if (records.length === limit) return `${day}.${index}`
    records.push({ day, ...differenceOf(one) })
  }
  return undefined
}

const differences = (sql: SqlClient): StoredContract["differences"] =>
  Effect.fnUntraced(function* ({ before, cause, from = "", limit, model, to = lastDay, vendor }) {
    const start = placeOf(before)
    const last = start !== undefined && start.day < to ? start.day : to
    const days = yield* sql<Pick<DayRow, "causes" | "day">>`SELECT day, causes FROM tollgate_reconciliation_days
      WHERE vendor = ${vendor} AND day >= ${from} AND day <= ${last} ORDER BY day DESC LIMIT ${listMax}`
    const wanted = days.filter(({ causes }) =>
      causesIn(causes).some((one) => cause === undefined || one.cause === cause)
    )
    const isWanted: Wanted = (one) =>
      (cause === undefined || one.cause === cause) && (model === undefined || one.model === model)
    const records: Array<ReconciledDifference> = []
    for (const { day } of wanted.slice(0, daysPerPage)) {
      yield* turn
      const [row] = yield* sql<{ readonly differences: string }>`SELECT differences FROM tollgate_reconciliation_days
        WHERE vendor = ${vendor} AND day = ${day}`
      const first = start?.day === day ? start.index : 0
      const next = addFrom(row?.differences ?? "[]", day, first, isWanted, limit, records)
      if (next !== undefined) return { records, next }
    }
    const further = wanted[daysPerPage]
    if (further !== undefined) return { records, next: `${further.day}.0` }
    return { records, next: days.length === listMax ? `${days.at(-1)!.day}.${endOfDay}` : null }
  }, Effect.orDie)

const drifts = (sql: SqlClient): StoredContract["drifts"] =>
  Effect.map(
    Effect.orDie(sql<DayRow>`SELECT ${sql.literal(columns)} FROM tollgate_reconciliation_days r
      WHERE day = (SELECT MAX(day) FROM tollgate_reconciliation_days n WHERE n.vendor = r.vendor)`),
    (rows) =>
      rows.map(lineOf).map(({ billed, coverage, drift, vendor }): BillDrift => ({ vendor, drift, billed, coverage }))
  )

/** Returns the first and the last compared day of each vendor. */
export const spans = (sql: SqlClient) =>
  Effect.orDie(sql<{ readonly vendor: string; readonly first_day: string; readonly last_day: string }>`
    SELECT vendor, MIN(day) AS first_day, MAX(day) AS last_day FROM tollgate_reconciliation_days GROUP BY vendor`)
