/**
 * The sorted index. It stores a tenant's records in the order of a value, for sorted pages. A database index by value would make every charge touch a
 * random page. Instead, every `runSize` records of a tenant form a sorted run, which is written once all its records exist and never changes. Every
 * `fanOut` runs are merged into a run of the next level. Readers sort the records that no run covers: those after the last run, and the partial runs
 * at the ends of a window. `SortedIndexer` writes the runs.
 *
 * On a level with `n` records per run, run `i` begins with the record number `i * n + 1`. Its places (value and row) are stored in blocks. A block is
 * found by its first place.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { inSlices, sliceSize, turn } from "../../../kernel/Pieces.ts"
import type { Range } from "../../../kernel/Pieces.ts"
import { recordsAmong } from "../rows/RowLinks.ts"
import * as RecordOrder from "./RecordOrder.ts"
import type { Direction } from "./RecordOrder.ts"
import type { Statement } from "../rules/Transaction.ts"
import type { Value } from "./Varints.ts"

/** The sort keys, each as an SQL expression of the record `r`. */
export const values = {
  cost: "r.cost",
  total_tokens: "(r.prompt_tokens + r.completion_tokens)",
  latency: "r.latency_ms"
} as const
export type Sort = keyof typeof values

const sorts = Object.keys(values) as ReadonlyArray<Sort>

export const runSize = 2048
export const fanOut = 16
/** The number of records per run, by level. */
export const sizes: ReadonlyArray<number> = [runSize, runSize * fanOut, runSize * fanOut ** 2]
/** The number of places per block. A run consists of full blocks. */
export const blockSize = 1024

export interface Run {
  readonly level: number
  readonly run: number
}

/** A tenant's run counts, by level. */
export type Written = ReadonlyArray<number>

/** Selects an INTEGER column or expression for `valueRead`: as text if a JavaScript number would not be exact. */
export const exact = (expression: string): string =>
  `CASE WHEN abs(${expression}) > ${Number.MAX_SAFE_INTEGER} THEN CAST(${expression} AS TEXT) ELSE ${expression} END`

export const valueRead = (read: number | string): Value => (typeof read === "number" ? read : BigInt(read))

export const written = (sql: SqlClient, tenant: string): Effect.Effect<Written, SqlError> =>
  Effect.map(
    sql<{ readonly level: number; readonly runs: number }>`
      SELECT level, runs FROM tollgate_usage_sorted_runs WHERE tenant_id = ${tenant}`,
    (rows) => sizes.map((_, level) => rows.find((row) => row.level === level)?.runs ?? 0)
  )

/** Covers a range of numbers with as few runs as possible. `rest` contains the ranges that no run covers. */
export const cover = (range: Range, has: Written): { runs: ReadonlyArray<Run>; rest: ReadonlyArray<Range> } => {
  const runs: Array<Run> = []
  const rest: Array<Range> = []
  for (let from = range.from; from < range.to;) {
    const level = sizes.findLastIndex(
      (size, level) => (from - 1) % size === 0 && from + size <= range.to && (from - 1) / size < (has[level] ?? 0)
    )
    if (level >= 0) {
      const size = sizes[level]!
      runs.push({ level, run: (from - 1) / size })
      from += size
      continue
    }
    const to = Math.min(range.to, from + runSize - ((from - 1) % runSize))
    const last = rest.at(-1)
    if (last?.to === from) rest[rest.length - 1] = { from: last.from, to }
    else rest.push({ from, to })
    from = to
  }
  return { runs, rest }
}

// ---- reading ------------------------------------------------------------------------------------------------------------

/** A cursor: reading continues after this place. */
export interface After {
  readonly value: Value
  readonly seq: number
}

interface BlockRow {
  readonly first: number | string
  readonly seq: number
  readonly places: Uint8Array
}

/** Creates a reader for the blocks of a tenant's runs, for one sort key. */
export const reader = (sql: SqlClient, tenant: string, sort: Sort, direction: Direction) => {
  const order = sql.literal(direction)
  const beyondSign = sql.literal(direction === "desc" ? "<" : ">")
  const ofRun = ({ level, run }: Run) =>
    sql`tenant_id = ${tenant} AND sort = ${sort} AND level = ${level} AND run = ${run}`
  const read = sql.literal(`SELECT ${exact("value")} AS first, seq, places FROM tollgate_usage_sorted_blocks WHERE`)
  const block = ([row]: ReadonlyArray<BlockRow>) => {
    if (row === undefined) return undefined
    const value = valueRead(row.first)
    return { first: { value, seq: row.seq }, places: RecordOrder.decode(row.places, value) }
  }

  /** Reads the block after the block that begins with `first`, in the reader's direction, or the run's first block without `first`. */
  const next = (run: Run, first?: After) =>
    Effect.map(
      sql<BlockRow>`${read} ${ofRun(run)} ${
        first === undefined ? sql.literal("") : sql`AND (value, seq) ${beyondSign} (${first.value}, ${first.seq})`
      } ORDER BY value ${order}, seq ${order} LIMIT 1`,
      block
    )

  /** Reads the block that contains `after`. If `after` is below all blocks, reads the first block (ascending) or none (descending). */
  const from = (run: Run, after: After) =>
    Effect.flatMap(
      sql<BlockRow>`${read} ${ofRun(run)} AND (value, seq) <= (${after.value}, ${after.seq})
        ORDER BY value DESC, seq DESC LIMIT 1`,
      (rows) => (rows.length > 0 || direction === "desc" ? Effect.succeed(block(rows)) : next(run))
    )

  return { next, from }
}

/** Finds the index of the first place after `after` in this direction. The index is outside the block if there is no such place. */
const beginning = ({ seqs, values }: RecordOrder.RecordOrder, after: After, direction: Direction): number => {
  // Search for the first place greater than `after` or, if descending, for the last place less than `after`.
  let [low, high] = [0, seqs.length]
  const isLow = (i: number) => {
    const value = values[i]!
    if (value !== after.value) return value < after.value
    return direction === "desc" ? seqs[i]! < after.seq : seqs[i]! <= after.seq
  }
  while (low < high) {
    const middle = (low + high) >> 1
    if (isLow(middle)) low = middle + 1
    else high = middle
  }
  return direction === "desc" ? low - 1 : low
}

/**
 * Merges the places of the runs and of `rest`, and passes them to `give` in order until it returns false. Reads one block of each run at a time. If
 * `after` is set, the runs' places begin after it. `rest` is not filtered.
 */
export const walk = Effect.fnUntraced(function* (
  sql: SqlClient,
  {
    after,
    direction,
    rest,
    runs,
    sort,
    tenant
  }: {
    readonly tenant: string
    readonly sort: Sort
    readonly direction: Direction
    readonly runs: ReadonlyArray<Run>
    readonly rest: RecordOrder.RecordOrder
    readonly after?: After | undefined
  },
  give: (value: Value, seq: number) => boolean
) {
  const blocks = reader(sql, tenant, sort, direction)
  const merge = new RecordOrder.Merge<{ readonly run: Run; readonly first: After } | undefined>(direction)
  merge.add(undefined, rest)
  let reads = 0
  const add = Effect.fnUntraced(function* (run: Run, first: After | undefined, start: After | undefined) {
    if (++reads % readsInTurn === 0) yield* turn
    const found = yield* start === undefined ? blocks.next(run, first) : blocks.from(run, start)
    if (found === undefined) return
    const at = start === undefined ? undefined : beginning(found.places, start, direction)
    // No place of the block follows `after`.
    if (at !== undefined && (at < 0 || at >= found.places.seqs.length)) return yield* follow(run, found.first)
    merge.add({ run, first: found.first }, found.places, at)
  })
  const follow = (run: Run, first: After): Effect.Effect<void, SqlError> => add(run, first, undefined)
  yield* Effect.forEach(runs, (run) => add(run, undefined, after), { discard: true })

  let more = true
  for (let given = 0; !merge.isEmpty;) {
    const over = merge.drain(sliceSize, (value, seq) => {
      if (more) more = give(value, seq)
      given++
    })
    if (!more) return
    if (over !== undefined) yield* follow(over.run, over.first)
    else if (given >= sliceSize) {
      given = 0
      yield* turn
    }
  }
})

/** The number of blocks, and of records, to read before yielding to other fibers. */
const readsInTurn = 16
const recordsInTurn = 512

/** Returns a tenant's missing runs at this record count. Each run follows the runs that it merges. */
export const due = (records: number, has: Written): ReadonlyArray<Run> => {
  const runs: Array<Run> = []
  const next = [...has]
  /** Adds the next run of a level, and the runs on higher levels that it completes. */
  const add = (level: number): void => {
    runs.push({ level, run: next[level]! })
    next[level]! += 1
    if (level + 1 < has.length && (next[level + 1]! + 1) * fanOut <= next[level]!) add(level + 1)
  }
  // Begin with the runs that an earlier iteration left unwritten.
  for (let level = 1; level < has.length; level++) {
    while ((next[level]! + 1) * fanOut <= next[level - 1]!) add(level)
  }
  while ((next[0]! + 1) * runSize <= records) add(0)
  return runs
}

// ---- writing ------------------------------------------------------------------------------------------------------------

export interface Block extends After {
  readonly sort: Sort
  readonly places: Uint8Array
}

/** A record's `seq` and its values, in the order of `sorts`. */
type MeasuresRow = readonly [seq: number, ...values: ReadonlyArray<number | string>]

/** Builds a run's blocks on the lowest level, from its records. */
const blocksOfRecords = Effect.fnUntraced(function* (sql: SqlClient, tenant: string, { run }: Run) {
  const columns = sql.literal(sorts.map((sort) => `${exact(values[sort])} AS ${sort}`).join(", "))
  const from = run * runSize + 1
  const pieces = yield* inSlices(
    { from, to: from + runSize },
    // Arrays cost the driver less than half as much as objects.
    (piece) => sql`SELECT r.seq, ${columns} FROM ${recordsAmong(sql, tenant, piece)} ORDER BY r.seq`.values,
    recordsInTurn
  )
  const rows = pieces.flat() as ReadonlyArray<unknown> as ReadonlyArray<MeasuresRow>
  const seqs = rows.map(([seq]) => seq)
  const blocks: Array<Block> = []
  for (const [i, sort] of sorts.entries()) {
    yield* turn
    const sorted = RecordOrder.inOrder({ values: rows.map((row) => valueRead(row[i + 1]!)), seqs })
    for (let at = 0; at < seqs.length; at += blockSize) {
      blocks.push(
        blockOf(sort, { values: sorted.values.slice(at, at + blockSize), seqs: sorted.seqs.slice(at, at + blockSize) })
      )
    }
  }
  return blocks
})

/** Builds a run's blocks on a higher level, from the runs on the level below. */
const blocksOfRuns = Effect.fnUntraced(function* (sql: SqlClient, tenant: string, { level, run }: Run) {
  const runs = Array.from({ length: fanOut }, (_, i) => ({ level: level - 1, run: run * fanOut + i }))
  const blocks: Array<Block> = []
  for (const sort of sorts) {
    let [values, seqs]: [Array<Value>, Array<number>] = [[], []]
    const flush = () => {
      if (seqs.length > 0) blocks.push(blockOf(sort, { values, seqs }))
      ;[values, seqs] = [[], []]
    }
    yield* walk(sql, { tenant, sort, direction: "asc", runs, rest: none }, (value, seq) => {
      values.push(value)
      if (seqs.push(seq) === blockSize) flush()
      return true
    })
    flush()
  }
  return blocks
})

const none: RecordOrder.RecordOrder = { values: [], seqs: [] }

const blockOf = (sort: Sort, places: RecordOrder.RecordOrder): Block => ({
  sort,
  value: places.values[0]!,
  seq: places.seqs[0]!,
  places: RecordOrder.encode(places)
})

/** Builds a run's blocks for all sort keys. The result is deterministic. */
export const blocksOf = (sql: SqlClient, tenant: string, run: Run) =>
  run.level === 0 ? blocksOfRecords(sql, tenant, run) : blocksOfRuns(sql, tenant, run)

/** Builds the statement that writes a run's block. An existing block is equal and remains unchanged. */
export const writeBlock = (tenant: string, { level, run }: Run, { places, seq, sort, value }: Block): Statement => ({
  text: `INSERT INTO tollgate_usage_sorted_blocks (tenant_id, sort, level, run, value, seq, places)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  params: [tenant, sort, level, run, value, seq, places]
})

/** Builds the statement that marks this run and all earlier runs as written. */
export const writeRun = (tenant: string, { level, run }: Run): Statement => ({
  text: `INSERT INTO tollgate_usage_sorted_runs (tenant_id, level, runs) VALUES (?, ?, ?)
    ON CONFLICT (tenant_id, level) DO UPDATE SET runs = excluded.runs WHERE tollgate_usage_sorted_runs.runs < excluded.runs`,
  params: [tenant, level, run + 1]
})

// ---- checking -----------------------------------------------------------------------------------------------------------

/** A difference between stored and recomputed data, such as the block count and digest of a run's sort order. */
export interface Fault {
  readonly id: string
  readonly expected: string
  readonly found: string
}

/** Finds a run's sort orders that differ from the recomputed blocks. Runs never change, so the check works during writes. */
export const faultsOf = Effect.fnUntraced(function* (sql: SqlClient, tenant: string, run: Run) {
  const due = yield* blocksOf(sql, tenant, run)
  const faults: Array<Fault> = []
  for (const sort of sorts) {
    const stored = yield* sql<BlockRow>`SELECT ${sql.literal(exact("b.value"))} AS first, seq, places
      FROM tollgate_usage_sorted_blocks b
      WHERE tenant_id = ${tenant} AND sort = ${sort} AND level = ${run.level} AND run = ${run.run} ORDER BY b.value, b.seq`
    const expected = digest(due.filter((block) => block.sort === sort))
    const found = digest(stored.map(({ first, places, seq }) => ({ value: valueRead(first), seq, places })))
    if (expected !== found)
      faults.push({ id: `${run.run} of level ${run.level} by ${sort} of ${tenant}`, expected, found })
  }
  return faults
})

const digest = (blocks: ReadonlyArray<Omit<Block, "sort">>): string => {
  const hash = createHash("sha256")
  for (const { places, seq, value } of blocks) hash.update(`${value} ${seq} `).update(places)
  return `${blocks.length} blocks ${hash.digest("hex").slice(0, 16)}`
}

export const allRuns = (sql: SqlClient) =>
  Effect.map(
    sql<{ readonly tenant_id: string; readonly level: number; readonly runs: number }>`
      SELECT tenant_id, level, runs FROM tollgate_usage_sorted_runs ORDER BY tenant_id, level`,
    (rows) =>
      rows.flatMap(({ level, runs, tenant_id: tenant }) =>
        Array.from({ length: runs }, (_, run) => ({ tenant, level, run }))
      )
  )
