/**
 * Pre-aggregated totals for each run of a tenant's records, for sums by any dimension and for filters. The runs are those on the lower two levels of
 * `SortedIndex`. A run's totals are one row, which is written once all its records exist (`TotalsIndexer`) and never changes. Records after the last
 * run are read directly.
 *
 * The row contains three byte strings:
 * - `sums`: the sums by hour and dimensions;
 * - `totals`: the sums by dimensions alone;
 * - `kinds`, only on the lowest level: for each record, by number, its dimensions' index in `totals` and whether the call succeeded.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { hour } from "../../../kernel/Moment.ts"
import { inSlices, turn } from "../../../kernel/Pieces.ts"
import type { Range } from "../../../kernel/Pieces.ts"
import { recordsAmong } from "../rows/RowLinks.ts"
import { plus } from "./RecordOrder.ts"
import { cover, exact, fanOut, runSize, sizes, valueRead } from "./SortedIndex.ts"
import type { Fault, Run, Written } from "./SortedIndex.ts"
import type { Statement } from "../rules/Transaction.ts"
import { valueOf, VarintReader, VarintWriter } from "./Varints.ts"
import type { Value } from "./Varints.ts"

/** The sums of an hour's calls with equal dimensions. */
export interface Sum {
  /** Unix time in hours. */
  readonly hour: number
  readonly dimensions: number
  readonly requests: number
  readonly failures: number
  readonly tokens: number
  /** In nano-USD. */
  readonly cost: Value
}

/** Receives a sum as separate arguments, because millions of objects would be slow. */
export type Give = (
  hour: number,
  dimensions: number,
  requests: number,
  failures: number,
  tokens: number,
  cost: Value
) => void

export const hourOf = (at: number): number => Math.floor(at / hour)

// ---- bytes --------------------------------------------------------------------------------------------------------------

/** Encodes sums that are ordered by hour, then dimensions. Hours and dimensions are stored as differences from the previous ones. */
const encode = (sums: ReadonlyArray<Sum>): Uint8Array => {
  const numbers = new VarintWriter()
  let hour = 0
  let dimensions = 0
  for (const sum of sums) {
    if (sum.hour !== hour) dimensions = 0
    numbers.put(sum.hour - hour)
    numbers.put(sum.dimensions - dimensions)
    numbers.put(sum.requests)
    numbers.put(sum.failures)
    numbers.put(sum.tokens)
    numbers.put(sum.cost)
    hour = sum.hour
    dimensions = sum.dimensions
  }
  return numbers.written()
}

/** Passes the sums in `sums` or `totals` (where all hours are 0) to `give`, in order. */
export const decode = (bytes: Uint8Array, give: Give): void => {
  const numbers = new VarintReader(bytes)
  let hour = 0
  let dimensions = 0
  while (!numbers.isDone) {
    const later = numbers.number()
    if (later > 0) dimensions = 0
    hour += later
    dimensions += numbers.number()
    const requests = numbers.number()
    const failures = numbers.number()
    const tokens = numbers.number()
    give(hour, dimensions, requests, failures, tokens, numbers.next())
  }
}

/** Passes the call counts for each dimensions number in `totals` to `give`, in order. */
export const decodeCounts = (
  totals: Uint8Array,
  give: (dimensions: number, requests: number, failures: number) => void
): void => {
  const numbers = new VarintReader(totals)
  let dimensions = 0
  while (!numbers.isDone) {
    numbers.skip()
    dimensions += numbers.number()
    const requests = numbers.number()
    give(dimensions, requests, numbers.number())
    numbers.skip()
    numbers.skip()
  }
}

/** Adds up the sums with equal hour and dimensions. */
class SumAccumulator {
  private readonly hours = new Map<number, Map<number, { -readonly [Name in keyof Sum]: Sum[Name] }>>()

  readonly add: Give = (hour, dimensions, requests, failures, tokens, cost) => {
    let sums = this.hours.get(hour)
    if (sums === undefined) this.hours.set(hour, (sums = new Map()))
    const sum = sums.get(dimensions)
    if (sum === undefined) return void sums.set(dimensions, { hour, dimensions, requests, failures, tokens, cost })
    sum.requests += requests
    sum.failures += failures
    sum.tokens += tokens
    sum.cost = plus(sum.cost, cost)
  }

  sums(): ReadonlyArray<Sum> {
    return [...this.hours.values()]
      .flatMap((sums) => [...sums.values()])
      .sort((a, b) => a.hour - b.hour || a.dimensions - b.dimensions)
  }
}

const totalsOf = (sums: ReadonlyArray<Sum>): ReadonlyArray<Sum> => {
  const adding = new SumAccumulator()
  for (const { cost, dimensions, failures, requests, tokens } of sums) {
    adding.add(0, dimensions, requests, failures, tokens, cost)
  }
  return adding.sums()
}

/** Encodes kinds. A kind is twice the index in the totals, plus one if the call succeeded. */
const encodeKinds = (records: ReadonlyArray<RecordRow>, totals: ReadonlyArray<Sum>): Uint8Array => {
  const places = new Map(totals.map(({ dimensions }, place) => [dimensions, place]))
  const numbers = new VarintWriter()
  for (const [, dimensions, success] of records) numbers.put(2 * places.get(dimensions)! + success)
  return numbers.written()
}

// ---- reading ------------------------------------------------------------------------------------------------------------

type Part = "totals" | "sums"

/** Counts a tenant's runs that have totals, by level. */
export const written = (sql: SqlClient, tenant: string): Effect.Effect<Written, SqlError> => {
  const count = (level: number) =>
    sql`SELECT COALESCE(MAX(run) + 1, 0) FROM tollgate_usage_tallies WHERE tenant_id = ${tenant} AND level = ${level}`
  return Effect.map(
    sql<{ readonly lower: number; readonly upper: number }>`SELECT (${count(0)}) AS lower, (${count(1)}) AS upper`,
    ([row]) => [row!.lower, row!.upper]
  )
}

const numbersOf = ({ level, run }: Run): Range => ({ from: run * sizes[level]! + 1, to: (run + 1) * sizes[level]! + 1 })

/**
 * Finds the runs that overlap the range, in order. `isWhole` means that the range contains the entire run. `rest` contains the numbers that no run
 * covers.
 */
export const overlappingRuns = (range: Range, has: Written) => {
  const end = has[0]! * runSize + 1
  const whole = (number: number): number => Math.floor((number - 1) / runSize) * runSize + 1
  const from = whole(range.from)
  const to = Math.min(whole(range.to + runSize - 1), end)
  const runs = from < to && range.from < range.to ? cover({ from, to }, has).runs : []
  return {
    runs: runs.map((run) => {
      const numbers = numbersOf(run)
      return { ...run, isWhole: range.from <= numbers.from && numbers.to <= range.to }
    }),
    rest: { from: Math.max(range.from, end), to: range.to } satisfies Range
  }
}

/** The maximum number of runs per statement, by level. Reading them takes a millisecond or two. */
const rowsAtOnce: Readonly<Record<Part, ReadonlyArray<number>>> = { totals: [16, 16], sums: [8, 1] }

/** Reads one part of the runs' totals, in order, and yields to other work between queries. */
export const each = Effect.fnUntraced(function* (
  sql: SqlClient,
  tenant: string,
  runs: ReadonlyArray<Run>,
  part: Part,
  read: (bytes: Uint8Array, run: Run) => void
) {
  for (let at = 0; at < runs.length;) {
    if (at > 0) yield* turn
    const { level, run } = runs[at]!
    const most = Math.min(runs.length, at + rowsAtOnce[part][level]!)
    let end = at + 1
    while (end < most && runs[end]!.level === level && runs[end]!.run === run + end - at) end++
    const rows = yield* sql<{ readonly run: number; readonly bytes: Uint8Array }>`
      SELECT run, ${sql.literal(part)} AS bytes FROM tollgate_usage_tallies
      WHERE tenant_id = ${tenant} AND level = ${level} AND run >= ${run} AND run < ${run + end - at} ORDER BY run`
    for (const row of rows) read(row.bytes, { level, run: row.run })
    at = end
  }
})

/** Sums the records in a range. The result is encoded like `sums`, with one byte string per slice of records. */
export const sumsAmong = (sql: SqlClient, tenant: string, range: Range) =>
  inSlices(range, (piece) =>
    Effect.map(
      sql`SELECT r.at - r.at % ${sql.literal(`${hour}`)}, r.dimensions, COUNT(*), COUNT(*) - SUM(r.success),
          SUM(r.prompt_tokens + r.completion_tokens), CAST(SUM(r.cost) AS TEXT)
        FROM ${recordsAmong(sql, tenant, piece)} GROUP BY 1, 2 ORDER BY 1, 2`.values,
      (rows) =>
        encode(
          (rows as ReadonlyArray<unknown> as ReadonlyArray<GroupRow>).map(
            ([at, dimensions, requests, failures, tokens, cost]) => ({
              hour: hourOf(at),
              dimensions,
              requests,
              failures,
              tokens,
              cost: valueOf(BigInt(cost))
            })
          )
        )
    )
  )

type GroupRow = readonly [
  at: number,
  dimensions: number,
  requests: number,
  failures: number,
  tokens: number,
  cost: string
]

/** Finds the record numbers in a run on the lowest level that satisfy `isWanted`, in order. */
export const numbersWhere = Effect.fnUntraced(function* (
  sql: SqlClient,
  tenant: string,
  { run }: Run,
  isWanted: (dimensions: number, success: boolean) => boolean
) {
  const [row] = yield* sql<{ readonly totals: Uint8Array; readonly kinds: Uint8Array }>`
    SELECT totals, kinds FROM tollgate_usage_tallies WHERE tenant_id = ${tenant} AND level = 0 AND run = ${run}`
  const wanted: Array<boolean> = []
  decodeCounts(row!.totals, (dimensions) => {
    wanted.push(isWanted(dimensions, false), isWanted(dimensions, true))
  })
  const found: Array<number> = []
  const kinds = new VarintReader(row!.kinds)
  for (let number = run * runSize + 1; !kinds.isDone; number++) if (wanted[kinds.number()]!) found.push(number)
  return found
})

// ---- writing ------------------------------------------------------------------------------------------------------------

export interface RunTotals extends Run {
  readonly totals: Uint8Array
  readonly kinds: Uint8Array | null
  readonly sums: Uint8Array
}

type RecordRow = readonly [at: number, dimensions: number, success: number, tokens: number, cost: number | string]

/** The number of records to read before yielding to other work. */
const recordsInTurn = 512

const ofRecords = Effect.fnUntraced(function* (sql: SqlClient, tenant: string, run: Run) {
  const pieces = yield* inSlices(
    numbersOf(run),
    // Arrays cost the driver less than half as much as objects.
    (piece) =>
      sql`SELECT r.at, r.dimensions, r.success, r.prompt_tokens + r.completion_tokens,
        ${sql.literal(exact("r.cost"))} AS cost
      FROM ${recordsAmong(sql, tenant, piece)} ORDER BY r.number`.values,
    recordsInTurn
  )
  const records = pieces.flat() as ReadonlyArray<unknown> as ReadonlyArray<RecordRow>
  const adding = new SumAccumulator()
  for (const [at, dimensions, success, tokens, cost] of records) {
    adding.add(hourOf(at), dimensions, 1, 1 - success, tokens, valueRead(cost))
  }
  const sums = adding.sums()
  const totals = totalsOf(sums)
  return { ...run, totals: encode(totals), kinds: encodeKinds(records, totals), sums: encode(sums) } satisfies RunTotals
})

const ofRuns = Effect.fnUntraced(function* (sql: SqlClient, tenant: string, run: Run) {
  const parts = Array.from({ length: fanOut }, (_, i) => ({ level: run.level - 1, run: run.run * fanOut + i }))
  const adding = new SumAccumulator()
  yield* each(sql, tenant, parts, "sums", (bytes) => decode(bytes, adding.add))
  yield* turn
  const sums = adding.sums()
  return { ...run, totals: encode(totalsOf(sums)), kinds: null, sums: encode(sums) } satisfies RunTotals
})

/** Computes a run's totals from its records or from the runs on the level below. The result is deterministic. */
export const tallyOf = (sql: SqlClient, tenant: string, run: Run): Effect.Effect<RunTotals, SqlError> =>
  run.level === 0 ? ofRecords(sql, tenant, run) : ofRuns(sql, tenant, run)

/** Builds the statement that writes a run's totals. Existing totals are equal and remain unchanged. */
export const write = (tenant: string, { kinds, level, run, sums, totals }: RunTotals): Statement => ({
  text: `INSERT INTO tollgate_usage_tallies (tenant_id, level, run, totals, kinds, sums) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`,
  params: [tenant, level, run, totals, kinds, sums]
})

// ---- checking -----------------------------------------------------------------------------------------------------------

/** Finds the parts of stored totals that differ from the recomputed totals. Stored totals never change, so the check works during writes. */
export const faultsOf = Effect.fnUntraced(function* (sql: SqlClient, tenant: string, run: Run) {
  const due = yield* tallyOf(sql, tenant, run)
  const [found] = yield* sql<RunTotals>`SELECT totals, kinds, sums FROM tollgate_usage_tallies
    WHERE tenant_id = ${tenant} AND level = ${run.level} AND run = ${run.run}`
  const parts = ["totals", "kinds", "sums"] as const
  return parts
    .map((part): Fault => ({
      id: `${part} of run ${run.run} of level ${run.level} of ${tenant}`,
      expected: digest(due[part]),
      found: digest(found?.[part] ?? null)
    }))
    .filter(({ expected, found }) => expected !== found)
})

const digest = (bytes: Uint8Array | null): string =>
  bytes === null ? "nothing" : createHash("sha256").update(bytes).digest("hex").slice(0, 16)

/** Lists the runs that should have totals: all up to the last stored run of each tenant and level. */
export const allRuns = (sql: SqlClient) =>
  Effect.map(
    sql<{ readonly tenant: string; readonly level: number; readonly runs: number }>`
      SELECT tenant_id AS tenant, level, MAX(run) + 1 AS runs FROM tollgate_usage_tallies GROUP BY tenant_id, level ORDER BY 1, 2`,
    (rows) =>
      rows.flatMap(({ level, runs, tenant }) => Array.from({ length: runs }, (_, run) => ({ tenant, level, run })))
  )
