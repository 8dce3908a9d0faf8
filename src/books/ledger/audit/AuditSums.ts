/**
 * Checks that the rollups equal the sums of the records up to the watermarks. The audit passes on each record as it reads it. The records of one
 * owner are in chronological order. The records of all owners are only approximately in order, because the writers of several nodes run concurrently
 * and have separate clocks. Therefore, a day counts as finished when the first record from two days later is read. The sums of about two days are in
 * memory. A day's rows are compared by owner (tenant, caller, payer), several owners per transaction. The transaction also reads the watermarks and
 * subtracts the day's records after them, so concurrent folding does not affect the result.
 *
 * After the comparison, only one bit per owner and day remains in memory. With these bits, a last pass over the rollups finds rows for days without
 * records.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { day, hour } from "../../../kernel/Moment.ts"
import { recordsAmong } from "../rows/RowLinks.ts"
import type { DimensionsRow } from "../rows/Dimensions.ts"
import type { CheckRow } from "../rules/Check.ts"
import { minus, plus } from "../totals/RecordOrder.ts"
import { rollups, sumColumns } from "../rows/Rollups.ts"
import type { OwnerColumn, Rollup } from "../rows/Rollups.ts"
import { exact, valueRead } from "../totals/SortedIndex.ts"
import type { Value } from "../totals/Varints.ts"

/** The sums of records, with the cost in nano-USD. */
interface Sums {
  requests: number
  successes: number
  prompt_tokens: number
  completion_tokens: number
  units: number
  cost: Value
  latency_ms: number
}

/** A record's columns for the rollups, except its cost and dimensions. */
export interface MeasuredRow {
  readonly tenant: string
  readonly number: number
  readonly at: number
  readonly success: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  readonly latency_ms: number
}

/** Selects the measures of a record `r`, except its cost. */
export const measureColumns = "r.success, r.prompt_tokens, r.completion_tokens, r.units, r.latency_ms"

/** The sums of a day's records with equal dimensions. */
interface Group {
  readonly tenant: string
  readonly dimensions: DimensionsRow
  /** The first and last record number. */
  readonly first: number
  last: number
  readonly hours: Array<Hour>
}

interface Hour {
  readonly at: number
  readonly sums: Sums
}

// ---- reading ------------------------------------------------------------------------------------------------------------

/** A day's records, grouped by dimensions, and the groups of each owner by rollup. */
export class Day {
  readonly start: number
  private readonly groups = new Map<number, Group>()
  private readonly owners: ReadonlyArray<Map<string, Array<Group>>> = rollups.map(() => new Map())

  constructor(start: number) {
    this.start = start
  }

  /** Adds a record. Returns its group if the group is new. */
  add(row: MeasuredRow, cost: Value, dimensions: DimensionsRow): Group | undefined {
    let group = this.groups.get(dimensions.number)
    const isNew = group === undefined
    if (group === undefined) {
      group = { tenant: row.tenant, dimensions, first: row.number, last: row.number, hours: [] }
      this.groups.set(dimensions.number, group)
      for (let i = 0; i < rollups.length; i++) {
        const owner = ownerOf(rollups[i]!, dimensions)
        const groups = this.owners[i]!.get(owner)
        if (groups === undefined) this.owners[i]!.set(owner, [group])
        else groups.push(group)
      }
    }
    group.last = row.number
    const at = row.at - (row.at % hour)
    let last = group.hours.at(-1)
    if (last?.at !== at) group.hours.push((last = { at, sums: nothing() }))
    addRecord(last.sums, row, cost)
    return isNew ? group : undefined
  }

  /** Returns the day's owners in portions of about `size` groups. */
  portions(rollup: number, size: number): ReadonlyArray<ReadonlyArray<string>> {
    const portions: Array<Array<string>> = []
    let left = 0
    for (const [owner, groups] of this.owners[rollup]!) {
      if (left <= 0) {
        portions.push([])
        left = size
      }
      portions.at(-1)!.push(owner)
      left -= groups.length
    }
    return portions
  }

  groupsOf(rollup: number, owner: string): ReadonlyArray<Group> {
    return this.owners[rollup]!.get(owner)!
  }
}

/** Stores one bit per owner and day: whether the owner has records on that day. */
class DaysOfOwners {
  private readonly words = new Map<string, Array<number>>()
  private base: number | undefined

  add(owner: string, start: number): void {
    const [word, bit] = this.placeOf(start)
    let words = this.words.get(owner)
    if (words === undefined) this.words.set(owner, (words = []))
    while (words.length <= word) words.push(0)
    words[word]! |= bit
  }

  has(owner: string, start: number): boolean {
    const [word, bit] = this.placeOf(start)
    return ((this.words.get(owner)?.[word] ?? 0) & bit) !== 0
  }

  private placeOf(start: number): readonly [word: number, bit: number] {
    const number = Math.floor(start / day)
    this.base ??= Math.floor(number / daysInWord)
    return [Math.floor(number / daysInWord) - this.base, 1 << (number % daysInWord)]
  }
}

/** The number of bits used per V8 small integer. */
const daysInWord = 30

/** The sums of the records read so far, for open days and for finished days that are not compared yet. */
export class DailySums {
  private current: Day | undefined
  private readonly open = new Map<number, Day>()
  private readonly over: Array<Day> = []
  private readonly days = rollups.map(() => new DaysOfOwners())

  read(row: MeasuredRow, cost: Value, dimensions: DimensionsRow): void {
    const start = row.at - (row.at % day)
    if (this.current === undefined || this.current.start !== start) this.current = this.dayOf(start)
    const group = this.current.add(row, cost, dimensions)
    if (group === undefined) return
    for (let i = 0; i < rollups.length; i++) this.days[i]!.add(ownerOf(rollups[i]!, group.dimensions), start)
  }

  private dayOf(start: number): Day {
    const known = this.open.get(start)
    if (known !== undefined) return known
    const one = new Day(start)
    this.open.set(start, one)
    for (const [other, before] of this.open) {
      if (other > start - 2 * day) continue
      this.over.push(before)
      this.open.delete(other)
    }
    return one
  }

  /** Returns and removes the finished days. */
  takeOver(): ReadonlyArray<Day> {
    return this.over.splice(0)
  }

  /** Returns all remaining days, and removes the finished ones. Open days can still receive records. */
  takeAll(): ReadonlyArray<Day> {
    return [...this.takeOver(), ...this.open.values()]
  }

  hasRecords(rollup: number, owner: string, start: number): boolean {
    return this.days[rollup]!.has(owner, start)
  }
}

const ownerOf = ({ owner }: Rollup, dimensions: DimensionsRow): string =>
  owner.length === 1 ? dimensions[owner[0]!] : owner.map((column) => dimensions[column]).join("\n")

const nothing = (): Sums => ({
  requests: 0,
  successes: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 0,
  cost: 0,
  latency_ms: 0
})

const addRecord = (to: Sums, row: MeasuredRow, cost: Value): void => {
  to.requests++
  to.successes += row.success
  to.prompt_tokens += row.prompt_tokens
  to.completion_tokens += row.completion_tokens
  to.units += row.units
  to.cost = plus(to.cost, cost)
  to.latency_ms += row.latency_ms
}

// ---- comparing ----------------------------------------------------------------------------------------------------------

/** A rollup row, as stored or as computed from records. */
interface SumsRow {
  readonly key: ReadonlyArray<string | number>
  readonly sums: Sums
}

/** A cursor in a rollup. It consists of the values of `placeColumns`. */
export type Place = ReadonlyArray<string | number>

export type ReportSums = (table: Rollup["table"], row: CheckRow) => void

interface Parts {
  readonly sql: SqlClient
  readonly sums: DailySums
  readonly report: ReportSums
}

/** Compares the rollups with `sums`. Each effect is short, and must run in a transaction if other connections can write. */
export const comparisonOf = (sql: SqlClient, sums: DailySums, report: ReportSums) => {
  const parts: Parts = { sql, sums, report }
  return { compare: compare(parts), strays: strays(parts) }
}

const compare = (parts: Parts) =>
  Effect.fnUntraced(function* (one: Day, i: number, owners: ReadonlyArray<string>) {
    const { report, sql } = parts
    const rollup = rollups[i]!
    const groups = owners.map((owner) => one.groupsOf(i, owner))
    const expected = yield* expectedRows(sql, rollup, groups.flat())
    const names = groups.map(([group]) => rollup.owner.map((column) => group!.dimensions[column]))
    for (const row of yield* storedRows(sql, rollup, names, one.start)) {
      const name = row.key.join("\n")
      const made = expected.get(name)
      if (made === undefined || !isSame(made.sums, row.sums)) reportDifference(report, rollup, row.key, made, row)
      expected.delete(name)
    }
    for (const row of expected.values()) reportDifference(report, rollup, row.key, row, undefined)
  })

/**
 * Reads `size` rows from a cursor. Reports rows for days on which their owner has no record, and rows with an unknown grain. Returns the next cursor,
 * or `undefined` at the end. All existing records must have been read before.
 */
const strays = (parts: Parts) =>
  Effect.fnUntraced(function* (i: number, from: Place, size: number) {
    const { report, sql, sums } = parts
    const rollup = rollups[i]!
    const rows = yield* sql.unsafe<DayRow>(selectDays(rollup), [...from, size])
    for (const row of rows) {
      const owner = rollup.owner.map((column) => row[column])
      if (!grains.has(row.grain))
        report(rollup.table, { id: owner.join("/"), expected: "hours and days", found: `periods of ${row.grain} ms` })
      if (sums.hasRecords(i, owner.join("\n"), row.day)) continue
      for (const stray of yield* storedRows(sql, rollup, [owner], row.day))
        reportDifference(report, rollup, stray.key, undefined, stray)
    }
    const last = rows.at(-1)
    if (last === undefined) return undefined
    return placeColumns(rollup).map((column) => (column === "start" ? last.day + day : last[column as OwnerColumn]))
  })

const reportDifference = (
  report: ReportSums,
  { table }: Rollup,
  key: SumsRow["key"],
  expected: SumsRow | undefined,
  found: SumsRow | undefined
) => report(table, { id: key.join("/"), expected: describeSums(expected?.sums), found: describeSums(found?.sums) })

/** Computes a rollup's expected rows from the groups' records up to the watermarks. */
const expectedRows = Effect.fnUntraced(function* (sql: SqlClient, rollup: Rollup, groups: ReadonlyArray<Group>) {
  const watermarks = yield* watermarksOf(sql, groups)
  const rows = new Map<string, SumsRow>()
  const ends = new Map<string, number>()
  const cut = new Map<number, Group>()
  for (const group of groups) {
    const watermark = watermarks.get(group.tenant) ?? 0
    if (group.first > watermark) continue
    for (const { at, sums } of group.hours) addTo(rows, rollup, group.dimensions, at, sums)
    if (group.last <= watermark) continue
    cut.set(group.dimensions.number, group)
    ends.set(group.tenant, Math.max(ends.get(group.tenant) ?? 0, group.last))
  }
  for (const [tenant, end] of ends) {
    for (const tail of yield* tailOf(sql, tenant, watermarks.get(tenant)! + 1, end)) {
      const group = cut.get(tail.dimensions)
      if (group !== undefined) addTo(rows, rollup, group.dimensions, tail.at, negative(tail))
    }
  }
  for (const [name, { sums }] of rows) if (sums.requests === 0) rows.delete(name)
  return rows
})

const watermarksOf = (sql: SqlClient, groups: ReadonlyArray<Group>) =>
  Effect.map(
    sql<{
      readonly tenant_id: string
      readonly number: number
    }>`SELECT tenant_id, number FROM tollgate_usage_watermarks
        WHERE tenant_id IN (SELECT value FROM json_each(${JSON.stringify([...new Set(groups.map(({ tenant }) => tenant))])}))`,
    (rows) => new Map(rows.map(({ number, tenant_id }) => [tenant_id, number]))
  )

/** Sums a tenant's records with the numbers `from` to `to` (inclusive), by dimensions and hour. */
const tailOf = (sql: SqlClient, tenant: string, from: number, to: number) =>
  Effect.map(
    sql<TailRow>`SELECT r.dimensions, r.at - r.at % ${sql.literal(`${hour}`)} AS at, COUNT(*) AS requests,
          ${sql.literal(tailColumns)}
        FROM ${recordsAmong(sql, tenant, { from, to: to + 1 })} GROUP BY 1, 2`,
    (rows) => rows.map((row) => ({ ...row, cost: valueRead(row.cost) }))
  )

/** Reads the owners' stored rows for a day. An owner is an array of its column values. */
const storedRows = (sql: SqlClient, rollup: Rollup, owners: ReadonlyArray<ReadonlyArray<string>>, start: number) =>
  Effect.map(sql.unsafe(selectKept(rollup), [JSON.stringify(owners), start, start + day]).values, (rows) =>
    rows.map((row) => rowOf(row as ReadonlyArray<string | number>, rollup.columns.length))
  )

interface TailRow extends Omit<Sums, "cost"> {
  readonly dimensions: number
  readonly at: number
  readonly cost: number | string
}

const tailColumns = [
  "SUM(r.success) AS successes",
  ...["prompt_tokens", "completion_tokens", "units", "latency_ms"].map((column) => `SUM(r.${column}) AS ${column}`),
  `${exact("SUM(r.cost)")} AS cost`
].join(", ")

/** Converts a row that was read as an array: its key, followed by `sumColumns`. */
const rowOf = (row: ReadonlyArray<string | number>, width: number): SumsRow => ({
  key: row.slice(0, width),
  sums: {
    requests: row[width] as number,
    successes: row[width + 1] as number,
    prompt_tokens: row[width + 2] as number,
    completion_tokens: row[width + 3] as number,
    units: row[width + 4] as number,
    cost: valueRead(row[width + 5]!),
    latency_ms: row[width + 6] as number
  }
})

/** Builds the query for stored rows. Its parameters are a JSON array of owners and the range of `start`. */
const selectKept = ({ columns, owner, table }: Rollup): string =>
  `SELECT ${columns.map((column) => `k.${column}`).join(", ")},
    ${sumColumns.map((column) => `${column === "cost" ? exact("k.cost") : `k.${column}`}`).join(", ")}
  FROM json_each(?) o CROSS JOIN ${table} k ON ${owner.map((column, i) => `k.${column} = json_extract(o.value, '$[${i}]')`).join(" AND ")}
    ${columns.includes("grain") ? `AND k.grain IN (${day}, ${hour})` : ""} AND k.start >= ? AND k.start < ?`

interface DayRow extends Readonly<Record<OwnerColumn, string>> {
  readonly grain?: number
  readonly day: number
}

/** The possible values of `grain`; `undefined` if the rollup has only days. */
const grains: ReadonlySet<number | undefined> = new Set([undefined, day, hour])

/** Returns the key columns for the owner and the time. */
const placeColumns = ({ columns, owner }: Rollup): ReadonlyArray<string> => [
  ...owner,
  ...columns.filter((column) => column === "grain"),
  "start"
]

/** Returns the cursor before a rollup's first row. */
export const beginningOf = (rollup: Rollup): Place =>
  placeColumns(rollup).map((column) => (column === "grain" || column === "start" ? Number.MIN_SAFE_INTEGER : ""))

/** Builds the query for the owners, grains and days of `LIMIT` rows from a cursor. */
const selectDays = (rollup: Rollup): string => {
  const place = placeColumns(rollup)
  const columns = place.join(", ")
  return `SELECT DISTINCT ${place.slice(0, -1).join(", ")}, start - start % ${day} AS day FROM (
    SELECT ${columns} FROM ${rollup.table} WHERE (${columns}) >= (${place.map(() => "?").join(", ")}) ORDER BY ${columns} LIMIT ?) stretch`
}

const addTo = (
  rows: Map<string, SumsRow>,
  { keysOf }: Rollup,
  dimensions: DimensionsRow,
  at: number,
  sums: Readonly<Sums>
): void => {
  for (const key of keysOf(dimensions, at)) {
    const name = key.join("\n")
    let row = rows.get(name)
    if (row === undefined) rows.set(name, (row = { key, sums: nothing() }))
    add(row.sums, sums)
  }
}

const add = (to: Sums, sums: Readonly<Sums>): void => {
  to.requests += sums.requests
  to.successes += sums.successes
  to.prompt_tokens += sums.prompt_tokens
  to.completion_tokens += sums.completion_tokens
  to.units += sums.units
  to.cost = plus(to.cost, sums.cost)
  to.latency_ms += sums.latency_ms
}

const negative = (sums: Readonly<Sums>): Sums => ({
  requests: -sums.requests,
  successes: -sums.successes,
  prompt_tokens: -sums.prompt_tokens,
  completion_tokens: -sums.completion_tokens,
  units: -sums.units,
  cost: minus(0, sums.cost),
  latency_ms: -sums.latency_ms
})

const isSame = (made: Readonly<Sums>, kept: Readonly<Sums>): boolean =>
  made.requests === kept.requests &&
  made.successes === kept.successes &&
  made.prompt_tokens === kept.prompt_tokens &&
  made.completion_tokens === kept.completion_tokens &&
  made.cost === kept.cost &&
  made.latency_ms === kept.latency_ms &&
  // Units can be fractions, and a floating-point sum depends on its order.
  Math.abs(kept.units - made.units) <= 1e-9 * (1 + Math.abs(made.units))

const describeSums = (sums: Readonly<Sums> | undefined): string =>
  sums === undefined
    ? "nothing"
    : `${sums.requests} calls, ${sums.successes} successful, ${sums.prompt_tokens} and ${sums.completion_tokens} tokens, ` +
      `${Number(sums.units.toPrecision(12))} units, ${sums.cost} nano-USD, ${sums.latency_ms} ms`
