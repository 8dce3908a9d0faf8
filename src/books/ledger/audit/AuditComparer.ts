/** Compares the rollups and the offsets with the rows that an audit has read. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { rollups } from "../rows/Rollups.ts"
import { tables } from "../rows/RowLinks.ts"
import { beginningOf, comparisonOf } from "./AuditSums.ts"
import type { Day, Place as RollupPlace } from "./AuditSums.ts"
import type { Pace } from "./Checkpoint.ts"
import type { Chain, Offset, RunningTotals } from "./RunningTotals.ts"

/** Runs an effect in one database snapshot. */
export type AtOneMoment = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>

interface Dependencies extends Pace {
  readonly sql: SqlClient
  readonly totals: RunningTotals
  /** Reads the rows written since the last slice. */
  readonly readRest: Effect.Effect<unknown, SqlError>
  readonly atOneMoment: AtOneMoment
}

interface Parts extends Dependencies {
  readonly sums: ReturnType<typeof comparisonOf>
  /** The number of groups to compare per transaction. Comparing their rollup rows takes about as long as reading a slice. */
  readonly portionSize: number
}

export const comparerOf = (dependencies: Dependencies) => {
  const { slice, sql, totals } = dependencies
  const sums = comparisonOf(sql, totals.sums, (table, row) => totals.report(`${table} sums the records`, row))
  const parts: Parts = { ...dependencies, sums, portionSize: Math.ceil(slice / 8) }
  return { offsets: offsets(parts), daysOver: daysOver(parts), rest: rest(parts) }
}

const daysOver = (parts: Parts) =>
  Effect.suspend(() =>
    Effect.forEach(parts.totals.sums.takeOver(), (day) => compareDay(parts, day, parts.atOneMoment), { discard: true })
  )

const compareDay = Effect.fnUntraced(function* (
  { pause, portionSize, sums }: Parts,
  day: Day,
  within: <A>(effect: Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>
) {
  for (let i = 0; i < rollups.length; i++) {
    for (const owners of day.portions(i, portionSize)) {
      yield* within(sums.compare(day, i, owners))
      yield* pause
    }
  }
})

/** Compares the last days, finds rollup rows without records, and counts the offsets. Each transaction first reads the rows committed meanwhile. */
const rest = (parts: Parts) =>
  Effect.gen(function* () {
    const { pause, readRest, slice, sql, sums, totals } = parts
    const withRest = <A>(effect: Effect.Effect<A, SqlError>) => sql.withTransaction(Effect.zipRight(readRest, effect))
    for (const day of totals.sums.takeAll()) yield* compareDay(parts, day, withRest)
    for (let i = 0; i < rollups.length; i++) {
      for (let from: RollupPlace | undefined = beginningOf(rollups[i]!); from !== undefined;) {
        const strays: Effect.Effect<RollupPlace | undefined, SqlError> = sums.strays(i, from, slice)
        from = yield* sql.withTransaction(Effect.zipRight(readRest, strays))
        yield* pause
      }
    }
    yield* offsetsCounted(parts, entryOffsets, totals.accounts)
    yield* offsetsCounted(parts, recordOffsets, totals.tenants)
  })

// ---- offsets ------------------------------------------------------------------------------------------------------------

const entryOffsets = {
  check: "tollgate_ledger_offsets locates the entries",
  ...tables.e,
  at: "NULL"
} as const

const recordOffsets = {
  check: "tollgate_usage_offsets locates the records",
  ...tables.r,
  at: "o.at"
} as const

type OffsetTable = typeof entryOffsets | typeof recordOffsets

/** The number of owners per query that counts offsets. */
const ownersInSlice = 64

/** Compares the offsets read since the last comparison. */
const offsets = (parts: Parts) =>
  Effect.suspend(() => {
    const { entryOffsets: entries, recordOffsets: records } = parts.totals
    parts.totals.entryOffsets = []
    parts.totals.recordOffsets = []
    return Effect.zipRight(compareOffsets(parts, entryOffsets, entries), compareOffsets(parts, recordOffsets, records))
  })

/** Compares stored offsets with `met`. Offsets are written together with their rows and never change, so this needs no snapshot. */
const compareOffsets = Effect.fnUntraced(function* (
  { sql, totals }: Parts,
  { at: atColumn, check, heads, offsets }: OffsetTable,
  met: ReadonlyArray<Offset>
) {
  if (met.length === 0) return
  const rows = yield* sql.unsafe<{ readonly seq: number | null; readonly at: number | null }>(
    `SELECT o.seq, ${atColumn} AS at FROM json_each(?) m LEFT JOIN ${heads} h ON h.id = json_extract(m.value, '$[0]')
      LEFT JOIN ${offsets} o ON o.owner = h.owner AND o.number = CAST(json_extract(m.value, '$[1]') AS BIGINT)
      ORDER BY CAST(m.key AS BIGINT)`,
    [JSON.stringify(met.map(({ number, owner }) => [owner, number]))]
  )
  for (let i = 0; i < met.length; i++) {
    const { at, number, owner, seq } = met[i]!
    const row = rows[i]!
    if (row.seq === seq && (row.at === at || atColumn === "NULL")) continue
    const words = (seq: number | null, at: number | null) =>
      seq === null ? "nothing" : atColumn === "NULL" ? `row ${seq}` : `row ${seq} at ${at}`
    totals.report(check, { id: `${owner} #${number}`, expected: words(seq, at), found: words(row.seq, row.at) })
  }
})

const offsetsCounted = Effect.fnUntraced(function* (
  { pause, readRest, sql, totals }: Parts,
  { check, heads, offsets }: OffsetTable,
  all: ReadonlyMap<string, Chain>
) {
  for (let last: number | undefined = 0; last !== undefined;) {
    const counts: ReadonlyArray<CountRow> = yield* sql.withTransaction(
      Effect.zipRight(
        readRest,
        sql.unsafe<CountRow>(
          `SELECT c.owner, c.count, h.id FROM (
            SELECT owner, COUNT(*) AS count FROM ${offsets} WHERE owner > ? GROUP BY 1 ORDER BY 1 LIMIT ${ownersInSlice}
          ) c LEFT JOIN ${heads} h ON h.owner = c.owner ORDER BY 1`,
          [last]
        )
      )
    )
    for (const { count, id, owner } of counts) {
      const due = id === null ? 0 : (all.get(id)?.offsets ?? 0)
      if (count !== due)
        totals.report(check, { id: id ?? `owner ${owner}`, expected: `${due} offsets`, found: `${count} offsets` })
    }
    last = counts.at(-1)?.owner
    yield* pause
  }
})

interface CountRow {
  readonly owner: number
  readonly id: string | null
  readonly count: number
}
