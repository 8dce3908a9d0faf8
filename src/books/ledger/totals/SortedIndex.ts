/**
 * A tenant's records in the order of a value, for pages that are sorted by it. An index by value would make every charge touch a page
 * somewhere in its middle. Instead each `runSize` records of a tenant are a sorted run, written once they are all there, and each `fanOut`
 * runs are merged into one more, of the next level. A run never changes; what lies behind the last one, and the ends of a window
 * that cut a run, are sorted when they are asked for. `SortedIndexer` writes the runs.
 *
 * The run `i` of a level with runs of `n` records holds the numbers from `i * n + 1` on. Its places lie in blocks, found by the place that
 * each begins with.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { inPieces, pieceSize, turn } from "../../../kernel/Pieces.ts"
import type { Range } from "../../../kernel/Pieces.ts"
import { recordsAmong } from "../rows/RowLinks.ts"
import * as RecordOrder from "./RecordOrder.ts"
import type { Direction } from "./RecordOrder.ts"
import type { Statement } from "../rules/Transaction.ts"
import type { Value } from "./Varints.ts"

/** The sort keys of records, each as an expression of the record `r`. */
export const values = {
  cost: "r.cost",
  total_tokens: "(r.prompt_tokens + r.completion_tokens)",
  latency: "r.latency_ms"
} as const
export type Sort = keyof typeof values

const sorts = Object.keys(values) as ReadonlyArray<Sort>

export const runSize = 2048
export const fanOut = 16
/** How many records a run of each level holds: a tenant with ten million has less than twenty of each of the lower two, and twenty of the last. */
export const sizes: ReadonlyArray<number> = [runSize, runSize * fanOut, runSize * fanOut ** 2]
/** How many places a block holds: a run is whole blocks. */
export const blockSize = 1024

/** A run of one tenant. */
export interface Run {
  readonly level: number
  readonly run: number
}

/** How many runs of each level a tenant has, from the lowest level on. */
export type Written = ReadonlyArray<number>

/** An INTEGER column or expression as a `Value`, by `valueRead`: as text where a number is not exact. */
export const exact = (expression: string): string =>
  `CASE WHEN abs(${expression}) > ${Number.MAX_SAFE_INTEGER} THEN CAST(${expression} AS TEXT) ELSE ${expression} END`

export const valueRead = (read: number | string): Value => (typeof read === "number" ? read : BigInt(read))

export const written = (sql: SqlClient, tenant: string): Effect.Effect<Written, SqlError> =>
  Effect.map(
    sql<{ readonly level: number; readonly runs: number }>`
      SELECT level, runs FROM tollgate_usage_sorted_runs WHERE tenant_id = ${tenant}`,
    (rows) => sizes.map((_, level) => rows.find((row) => row.level === level)?.runs ?? 0)
  )

/** A range of numbers as the fewest runs, and the stretches that no run holds. */
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

/** A place that a walk has come to: only what is beyond it is asked for. */
export interface After {
  readonly value: Value
  readonly seq: number
}

interface BlockRow {
  readonly first: number | string
  readonly seq: number
  readonly places: Uint8Array
}

/** Blocks of a tenant's runs in the order of one value. */
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

  /** The block behind the one that begins with `first`, in the reader's direction; without `first`, the run's first one. */
  const next = (run: Run, first?: After) =>
    Effect.map(
      sql<BlockRow>`${read} ${ofRun(run)} ${
        first === undefined ? sql.literal("") : sql`AND (value, seq) ${beyondSign} (${first.value}, ${first.seq})`
      } ORDER BY value ${order}, seq ${order} LIMIT 1`,
      block
    )

  /** The block that `after` falls into, or the first one where it falls before all of them. */
  const from = (run: Run, after: After) =>
    Effect.flatMap(
      sql<BlockRow>`${read} ${ofRun(run)} AND (value, seq) <= (${after.value}, ${after.seq})
        ORDER BY value DESC, seq DESC LIMIT 1`,
      (rows) => (rows.length > 0 || direction === "desc" ? Effect.succeed(block(rows)) : next(run))
    )

  return { next, from }
}

/** Where the places beyond `after` begin in a block, in a direction; outside of the block where there are none. */
const beginning = ({ seqs, values }: RecordOrder.RecordOrder, after: After, direction: Direction): number => {
  // The first place that is greater than `after`, or, descending, the last that is less.
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
 * Gives out the places of the runs, and of `rest`, in one order, beyond `after` where that is given, until `give` answers false. It reads
 * a block of each run at a time.
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
    // All of the block lies before `after`.
    if (at !== undefined && (at < 0 || at >= found.places.seqs.length)) return yield* follow(run, found.first)
    merge.add({ run, first: found.first }, found.places, at)
  })
  const follow = (run: Run, first: After): Effect.Effect<void, SqlError> => add(run, first, undefined)
  yield* Effect.forEach(runs, (run) => add(run, undefined, after), { discard: true })

  let more = true
  for (let given = 0; !merge.isEmpty;) {
    const over = merge.drain(pieceSize, (value, seq) => {
      if (more) more = give(value, seq)
      given++
    })
    if (!more) return
    if (over !== undefined) yield* follow(over.run, over.first)
    else if (given >= pieceSize) {
      given = 0
      yield* turn
    }
  }
})

/** How many blocks, and how many records, are read between two looks at the sockets. */
const readsInTurn = 16
const recordsInTurn = 512

/** The runs that a tenant with so many records can have and does not have yet, each behind those that it is made of. */
export const due = (records: number, has: Written): ReadonlyArray<Run> => {
  const runs: Array<Run> = []
  const next = [...has]
  /** Adds the next run of a level, and what it completes above. */
  const add = (level: number): void => {
    runs.push({ level, run: next[level]! })
    next[level]! += 1
    if (level + 1 < has.length && (next[level + 1]! + 1) * fanOut <= next[level]!) add(level + 1)
  }
  // The rest of an earlier turn comes first.
  for (let level = 1; level < has.length; level++) {
    while ((next[level]! + 1) * fanOut <= next[level - 1]!) add(level)
  }
  while ((next[0]! + 1) * runSize <= records) add(0)
  return runs
}

// ---- writing ------------------------------------------------------------------------------------------------------------

/** A block as stored. */
export interface Block extends After {
  readonly sort: Sort
  readonly places: Uint8Array
}

/** The number of a record, and its values in the order of `sorts`. */
type MeasuresRow = readonly [seq: number, ...values: ReadonlyArray<number | string>]

/** The run of the lowest level as its records make it. */
const blocksOfRecords = Effect.fnUntraced(function* (sql: SqlClient, tenant: string, { run }: Run) {
  const columns = sql.literal(sorts.map((sort) => `${exact(values[sort])} AS ${sort}`).join(", "))
  const from = run * runSize + 1
  const pieces = yield* inPieces(
    { from, to: from + runSize },
    // As lists, which costs the driver less than half of what objects do.
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

/** The run of a higher level as those of the level below make it. */
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

/** The blocks of a run, all sorts, as what it is made of gives them: always the same. */
export const blocksOf = (sql: SqlClient, tenant: string, run: Run) =>
  run.level === 0 ? blocksOfRecords(sql, tenant, run) : blocksOfRuns(sql, tenant, run)

/** Writes a block of a run. One that is there already is the same. */
export const writeBlock = (tenant: string, { level, run }: Run, { places, seq, sort, value }: Block): Statement => ({
  text: `INSERT INTO tollgate_usage_sorted_blocks (tenant_id, sort, level, run, value, seq, places)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  params: [tenant, sort, level, run, value, seq, places]
})

/** Says that the run is there, and with it all before it. */
export const writeRun = (tenant: string, { level, run }: Run): Statement => ({
  text: `INSERT INTO tollgate_usage_sorted_runs (tenant_id, level, runs) VALUES (?, ?, ?)
    ON CONFLICT (tenant_id, level) DO UPDATE SET runs = excluded.runs WHERE tollgate_usage_sorted_runs.runs < excluded.runs`,
  params: [tenant, level, run + 1]
})

// ---- checking -----------------------------------------------------------------------------------------------------------

/** A sort of a run, and what it should be and is: how many blocks, and a digest of them. */
export interface Fault {
  readonly id: string
  readonly expected: string
  readonly found: string
}

/** The sorts of a run that are not what the records make. A run never changes, so this holds while others write. */
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

/** All runs that are written. */
export const allRuns = (sql: SqlClient) =>
  Effect.map(
    sql<{ readonly tenant_id: string; readonly level: number; readonly runs: number }>`
      SELECT tenant_id, level, runs FROM tollgate_usage_sorted_runs ORDER BY tenant_id, level`,
    (rows) =>
      rows.flatMap(({ level, runs, tenant_id: tenant }) =>
        Array.from({ length: runs }, (_, run) => ({ tenant, level, run }))
      )
  )
