/**
 * Finds a tenant's records that match a filter and pages them in chronological order. A filter is converted to the set of matching dimensions. The
 * stored totals (`Totals`) count the matching records of each run of consecutive records, so most runs are skipped without reading a record. In the
 * page's run, the totals identify the records to read. Records without totals are read one by one.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect, Schema } from "effect"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import { inSlices, turn } from "../../kernel/Pieces.ts"
import type { Range } from "../../kernel/Pieces.ts"
import { cover, fanOut, sizes } from "../../books/ledger/totals/SortedIndex.ts"
import type { Run, Written } from "../../books/ledger/totals/SortedIndex.ts"
import * as Totals from "../../books/ledger/totals/Totals.ts"
import type * as Numbers from "./Numbers.ts"
import { usageTypes } from "./Usage.ts"
import type { Direction } from "./Usage.ts"

/** A filter that matches records with all of these values. An empty string matches an empty value. */
export interface Filter extends Schema.Schema.Type<typeof Filter> {}
const text = Schema.optionalWith(Schema.String, { exact: true })
export const Filter = Schema.Struct({
  model: text,
  provider: text,
  endpoint: text,
  account_id: text,
  application_id: text,
  billing_source_tenant_id: text,
  /** `name=value`, or `name` for any value. */
  tag: text,
  end_user: text,
  run_id: text,
  usage_type: Schema.optionalWith(Schema.Literal(...usageTypes), { exact: true }),
  success: Schema.optionalWith(Schema.Boolean, { exact: true })
})

export type LabelFilter = Pick<Filter, "tag" | "end_user" | "run_id">

/** The columns of `usage_dimensions` that a filter can use. */
const columns = [
  "model",
  "provider",
  "endpoint",
  "account_id",
  "application_id",
  "billing_source_tenant_id",
  "usage_type"
] as const

/** Selects dimensions with the tag `name=value`, or with the tag `name` and any value. */
const hasTag = (sql: SqlClient, tag: string): Fragment =>
  sql`instr(${"\n"} || tags || ${"\n"}, ${`\n${tag}${tag.includes("=") ? "\n" : "="}`}) > 0`

/** A page's position among the matching records, and its size. */
export interface PagePosition {
  readonly direction: Direction
  /** The range of the complete window. */
  readonly window: Range
  /** The part of the window after the cursor. */
  readonly left: Range
  readonly skipped: number
  readonly wanted: number
}

/** A range of record numbers with its count of matching records. `numbers` is present if no run covers the range. */
interface CountedRange extends Range {
  readonly count: number
  readonly run?: Run
  readonly numbers?: ReadonlyArray<number>
}

interface MatchCriteria {
  readonly dimensions: ReadonlySet<number>
  readonly success: boolean | undefined
}

/** Numbers separated by a smaller gap share a query. */
const gapMax = 64

export interface Parts {
  readonly sql: SqlClient
  readonly numbers: ReturnType<typeof Numbers.make>
}

export const make = (sql: SqlClient, numbers: ReturnType<typeof Numbers.make>) => ({
  /** Returns a page's record numbers in order, and the window's matching record count. */
  page: (tenant: string, filter: Filter, pagePosition: PagePosition) =>
    page({ sql, numbers }, tenant, filter, pagePosition)
})

/** Builds the conditions for dimensions with these labels. The index on runs is partial, so its condition is repeated here. */
export const labelConditions = (sql: SqlClient, { end_user, run_id, tag }: LabelFilter): ReadonlyArray<Fragment> => [
  ...(tag === undefined ? [] : [hasTag(sql, tag)]),
  ...(end_user === undefined ? [] : [sql`end_user = ${end_user}`]),
  ...(run_id === undefined ? [] : [run_id === "" ? sql`run_id = ''` : sql`run_id = ${run_id} AND run_id <> ''`])
]

/** Reads the dimensions that match a filter, regardless of its `success` field. */
export const dimensionsBy = Effect.fnUntraced(function* (sql: SqlClient, tenant: string, filter: Filter) {
  const named = columns.filter((column) => filter[column] !== undefined)
  // `+` keeps SQLite from using the indexes on other columns, because a run has few dimensions.
  const other = sql.literal(filter.run_id === undefined || filter.run_id === "" ? "" : "+")
  const rows = yield* sql<{ readonly number: number }>`SELECT number FROM tollgate_usage_dimensions WHERE ${sql.and([
    sql`tenant_id = ${tenant}`,
    ...named.map((column) => sql`${other}${sql.literal(column)} = ${filter[column]!}`),
    ...labelConditions(sql, filter)
  ])}`
  return new Set(rows.map(({ number }) => number)) as ReadonlySet<number>
})

/** Reads the dimensions of calls that a tenant's billing account paid for, by the tenant that made the calls. */
export const dimensionsPaid = Effect.fnUntraced(function* (sql: SqlClient, payer: TenantId, labels: LabelFilter) {
  const rows = yield* sql<{ readonly number: number; readonly tenant_id: TenantId }>`SELECT number, tenant_id
    FROM tollgate_usage_dimensions
    WHERE ${sql.and([sql`billing_account_id = ${billingAccountOf(payer)}`, ...labelConditions(sql, labels)])}`
  const paid = new Map<TenantId, Set<number>>()
  for (const { number, tenant_id } of rows) {
    const own = paid.get(tenant_id)
    if (own === undefined) paid.set(tenant_id, new Set([number]))
    else own.add(number)
  }
  return paid as ReadonlyMap<TenantId, ReadonlySet<number>>
})

/** Finds the runs that contain matching records. */
const runsWithMatches = Effect.fnUntraced(function* (
  { sql }: Parts,
  tenant: string,
  runs: ReadonlyArray<Run>,
  criteria: MatchCriteria
) {
  const found: Array<CountedRange> = []
  yield* Totals.each(sql, tenant, runs, "totals", (totals, run) => {
    let count = 0
    Totals.decodeCounts(totals, (dimensions, requests, failures) => {
      if (criteria.dimensions.has(dimensions)) count += countOf(criteria, requests, failures)
    })
    const from = run.run * sizes[run.level]! + 1
    if (count > 0) found.push({ from, to: from + sizes[run.level]!, count, run })
  })
  return found
})

/** Reads the matching records in a range that no run covers. */
const matchesIn = Effect.fnUntraced(function* (
  { numbers, sql }: Parts,
  tenant: string,
  range: Range,
  { dimensions, success }: MatchCriteria
) {
  const allowed = JSON.stringify([...dimensions])
  const ended = success === undefined ? sql.literal("") : sql`AND r.success = ${Number(success)}`
  const pieces = yield* inSlices(
    range,
    (piece) => sql<{ readonly number: number }>`SELECT r.number FROM ${numbers.among(tenant, piece)}
        AND r.dimensions IN (SELECT CAST(value AS BIGINT) FROM json_each(${allowed})) ${ended} ORDER BY r.number`
  )
  const found = pieces.flat().map(({ number }) => number)
  return { ...range, count: found.length, numbers: found } satisfies CountedRange
})

/** Divides a range into the runs with matching records and the ranges without totals. Returns both in order. */
const countedRanges = Effect.fnUntraced(function* (
  parts: Parts,
  tenant: string,
  range: Range,
  has: Written,
  criteria: MatchCriteria
) {
  const { rest, runs } = cover(range, has)
  const found = yield* runsWithMatches(parts, tenant, runs, criteria)
  for (const one of rest) found.push(yield* matchesIn(parts, tenant, one, criteria))
  return found.sort((a, b) => a.from - b.from)
})

/** A run with more matching records than this is read completely, because each range needs a query. */
const sparseMax = 32

/** A range to read. If `numbers` is present, only the records with these numbers are read. */
interface ReadRange extends Range {
  readonly numbers?: ReadonlyArray<number>
}

/**
 * Finds the ranges to read for the records of some dimensions. For a run of the lowest level with few matching records, the ranges contain only these
 * records. For any other run, the range is the complete run.
 */
export const readRangesOf = Effect.fnUntraced(function* (
  parts: Parts,
  tenant: string,
  range: Range,
  dimensions: ReadonlySet<number>
) {
  const criteria: MatchCriteria = { dimensions, success: undefined }
  const has = yield* Totals.written(parts.sql, tenant)
  const found = yield* countedRanges(parts, tenant, range, has, criteria)
  const upper = found.flatMap(({ run }) => (run !== undefined && run.level > 0 ? childRuns(run) : []))
  const inner = yield* runsWithMatches(parts, tenant, upper, criteria)
  const lower = [...found.filter(({ run }) => run === undefined || run.level === 0), ...inner]
  const places: Array<ReadRange> = []
  for (const { count, from, numbers, run, to } of lower) {
    if (run === undefined || count <= sparseMax) {
      const own = numbers ?? (yield* Totals.numbersWhere(parts.sql, tenant, run!, isMatch(criteria)))
      places.push(...rangesOf(own))
    } else places.push({ from, to })
    yield* turn
  }
  return places
})

/** Returns a condition that matches the wanted records `r` of a place. */
export const recordCondition = (sql: SqlClient, { numbers }: ReadRange, dimensions: ReadonlySet<number>): Fragment =>
  numbers === undefined
    ? sql`r.dimensions IN (SELECT CAST(value AS BIGINT) FROM json_each(${JSON.stringify([...dimensions])}))`
    : sql`r.number IN (SELECT CAST(value AS BIGINT) FROM json_each(${JSON.stringify(numbers)}))`

/**
 * Skips the first `skip` matching numbers and adds the next ones to `found` until the page is full. Returns the number of records that remain to be
 * skipped.
 */
const collect = (
  parts: Parts,
  tenant: string,
  among: ReadonlyArray<CountedRange>,
  pagePosition: PagePosition,
  criteria: MatchCriteria,
  skip: number,
  found: Array<number>
): Effect.Effect<number, SqlError> =>
  Effect.gen(function* () {
    let left = skip
    for (const countedRange of pagePosition.direction === "desc" ? among.toReversed() : among) {
      if (found.length >= pagePosition.wanted) return 0
      if (countedRange.count <= left) {
        left -= countedRange.count
        continue
      }
      const { run } = countedRange
      if (run !== undefined && run.level > 0) {
        const inner = yield* runsWithMatches(parts, tenant, childRuns(run), criteria)
        left = yield* collect(parts, tenant, inner, pagePosition, criteria, left, found)
        continue
      }
      const own = countedRange.numbers ?? (yield* Totals.numbersWhere(parts.sql, tenant, run!, isMatch(criteria)))
      const ordered = pagePosition.direction === "desc" ? own.toReversed() : own
      found.push(...ordered.slice(left, left + pagePosition.wanted - found.length))
      left = 0
    }
    return left
  })

const page = Effect.fnUntraced(function* (parts: Parts, tenant: string, filter: Filter, pagePosition: PagePosition) {
  const criteria: MatchCriteria = {
    dimensions: yield* dimensionsBy(parts.sql, tenant, filter),
    success: filter.success
  }
  const emptyPage = { total: 0, numbers: [] as ReadonlyArray<number> }
  if (criteria.dimensions.size === 0) return emptyPage
  const has = yield* Totals.written(parts.sql, tenant)
  const all = yield* countedRanges(parts, tenant, pagePosition.window, has, criteria)
  const isAll = pagePosition.left.from === pagePosition.window.from && pagePosition.left.to === pagePosition.window.to
  const left = isAll ? all : yield* countedRanges(parts, tenant, pagePosition.left, has, criteria)
  const found: Array<number> = []
  yield* collect(parts, tenant, left, pagePosition, criteria, pagePosition.skipped, found)
  return { total: all.reduce((sum, { count }) => sum + count, 0), numbers: found as ReadonlyArray<number> }
})

const countOf = ({ success }: MatchCriteria, requests: number, failures: number): number =>
  success === undefined ? requests : success ? requests - failures : failures

const isMatch =
  (criteria: MatchCriteria) =>
  (dimensions: number, success: boolean): boolean =>
    criteria.dimensions.has(dimensions) && (criteria.success === undefined || criteria.success === success)

const childRuns = ({ level, run }: Run): ReadonlyArray<Run> =>
  Array.from({ length: fanOut }, (_, i) => ({ level: level - 1, run: run * fanOut + i }))

/** Groups numbers into ranges that contain few other numbers. */
export const rangesOf = (numbers: ReadonlyArray<number>): ReadonlyArray<Required<ReadRange>> => {
  const ranges: Array<{ from: number; to: number; numbers: Array<number> }> = []
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last === undefined || number >= last.to + gapMax)
      ranges.push({ from: number, to: number + 1, numbers: [number] })
    else {
      last.to = number + 1
      last.numbers.push(number)
    }
  }
  return ranges
}
