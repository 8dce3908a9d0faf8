/**
 * The records of a tenant that a filter is for, page by page, in the order of time. A filter is the numbers of the dimensions that it allows.
 * How many records of a run have them stands in its tally, so runs are passed without a look at their records, and in a run that a page
 * falls into, the tally says which they are. Records that no tally holds are looked at one by one.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect, Schema } from "effect"
import { inPieces } from "../../kernel/Pieces.ts"
import type { Range } from "../../kernel/Pieces.ts"
import { cover, fanOut, sizes } from "../../books/ledger/SortedRuns.ts"
import type { Run, Written } from "../../books/ledger/SortedRuns.ts"
import * as Tallies from "../../books/ledger/Tallies.ts"
import type * as Numbers from "./Numbers.ts"
import { usageTypes } from "./Usage.ts"
import type { Direction } from "./Usage.ts"

/** Only records that have all of these; an empty text is matched as it is. */
export interface Filter extends Schema.Schema.Type<typeof Filter> {}
const text = Schema.optionalWith(Schema.String, { exact: true })
export const Filter = Schema.Struct({
  model: text,
  provider: text,
  endpoint: text,
  account_id: text,
  application_id: text,
  billing_source_tenant_id: text,
  usage_type: Schema.optionalWith(Schema.Literal(...usageTypes), { exact: true }),
  success: Schema.optionalWith(Schema.Boolean, { exact: true })
})

/** The columns of dimensions that a filter may name. */
const columns = [
  "model",
  "provider",
  "endpoint",
  "account_id",
  "application_id",
  "billing_source_tenant_id",
  "usage_type"
] as const

/** Where a page begins among the records that a filter allows, and how many it has. */
export interface Asked {
  readonly direction: Direction
  /** All that could be shown. */
  readonly window: Range
  /** The part of it that is left, behind a cursor. */
  readonly left: Range
  readonly skipped: number
  readonly wanted: number
}

/** A stretch of numbers, and how many of its records are allowed: which, is known where no run holds them. */
interface Stretch extends Range {
  readonly count: number
  readonly run?: Run
  readonly numbers?: ReadonlyArray<number>
}

interface Wanted {
  readonly dimensions: ReadonlySet<number>
  readonly success: boolean | undefined
}

/** How far apart two numbers may be to be read in one go. */
const gapMax = 64

export const make = (sql: SqlClient, numbers: ReturnType<typeof Numbers.make>) => {
  const wantedBy = Effect.fnUntraced(function* (tenant: string, filter: Filter) {
    const named = columns.filter((column) => filter[column] !== undefined)
    const rows = yield* sql<{ readonly number: number }>`SELECT number FROM tollgate_usage_dimensions WHERE ${sql.and([
      sql`tenant_id = ${tenant}`,
      ...named.map((column) => sql`${sql.literal(column)} = ${filter[column]!}`)
    ])}`
    return { dimensions: new Set(rows.map(({ number }) => number)), success: filter.success } satisfies Wanted
  })

  /** The stretches of these runs, without those that have none. */
  const stretchesOf = Effect.fnUntraced(function* (tenant: string, runs: ReadonlyArray<Run>, wanted: Wanted) {
    const found: Array<Stretch> = []
    yield* Tallies.each(sql, tenant, runs, "totals", (totals, run) => {
      let count = 0
      Tallies.decodeCounts(totals, (dimensions, requests, failures) => {
        if (wanted.dimensions.has(dimensions)) count += countOf(wanted, requests, failures)
      })
      const from = run.run * sizes[run.level]! + 1
      if (count > 0) found.push({ from, to: from + sizes[run.level]!, count, run })
    })
    return found
  })

  /** Those of records that no run holds. */
  const looked = Effect.fnUntraced(function* (tenant: string, range: Range, { dimensions, success }: Wanted) {
    const allowed = JSON.stringify([...dimensions])
    const ended = success === undefined ? sql.literal("") : sql`AND r.success = ${Number(success)}`
    const pieces = yield* inPieces(
      range,
      (piece) => sql<{ readonly number: number }>`SELECT r.number FROM ${numbers.among(tenant, piece)}
        AND r.dimensions IN (SELECT CAST(value AS BIGINT) FROM json_each(${allowed})) ${ended} ORDER BY r.number`
    )
    const found = pieces.flat().map(({ number }) => number)
    return { ...range, count: found.length, numbers: found } satisfies Stretch
  })

  /** A range as stretches, in the order of numbers. */
  const stretches = Effect.fnUntraced(function* (tenant: string, range: Range, has: Written, wanted: Wanted) {
    const { rest, runs } = cover(range, has)
    const found = yield* stretchesOf(tenant, runs, wanted)
    for (const one of rest) found.push(yield* looked(tenant, one, wanted))
    return found.sort((a, b) => a.from - b.from)
  })

  /** Adds the numbers of the stretches to `found`, but for the first `skip`, until there are so many; answers how many are left to skip. */
  const collect = (
    tenant: string,
    among: ReadonlyArray<Stretch>,
    asked: Asked,
    wanted: Wanted,
    skip: number,
    found: Array<number>
  ): Effect.Effect<number, SqlError> =>
    Effect.gen(function* () {
      let left = skip
      for (const stretch of asked.direction === "desc" ? among.toReversed() : among) {
        if (found.length >= asked.wanted) return 0
        if (stretch.count <= left) {
          left -= stretch.count
          continue
        }
        const { run } = stretch
        if (run !== undefined && run.level > 0) {
          const parts = yield* stretchesOf(tenant, partsOf(run), wanted)
          left = yield* collect(tenant, parts, asked, wanted, left, found)
          continue
        }
        const own = stretch.numbers ?? (yield* Tallies.numbersWhere(sql, tenant, run!, isWanted(wanted)))
        const ordered = asked.direction === "desc" ? own.toReversed() : own
        found.push(...ordered.slice(left, left + asked.wanted - found.length))
        left = 0
      }
      return left
    })

  /** The numbers of the records of a page, in its order, and how many the window has in all. */
  const page = Effect.fnUntraced(function* (tenant: string, filter: Filter, asked: Asked) {
    const wanted = yield* wantedBy(tenant, filter)
    const none = { total: 0, numbers: [] as ReadonlyArray<number> }
    if (wanted.dimensions.size === 0) return none
    const has = yield* Tallies.written(sql, tenant)
    const all = yield* stretches(tenant, asked.window, has, wanted)
    const isAll = asked.left.from === asked.window.from && asked.left.to === asked.window.to
    const left = isAll ? all : yield* stretches(tenant, asked.left, has, wanted)
    const found: Array<number> = []
    yield* collect(tenant, left, asked, wanted, asked.skipped, found)
    return { total: all.reduce((sum, { count }) => sum + count, 0), numbers: found as ReadonlyArray<number> }
  })

  return { page }
}

const countOf = ({ success }: Wanted, requests: number, failures: number): number =>
  success === undefined ? requests : success ? requests - failures : failures

const isWanted =
  (wanted: Wanted) =>
  (dimensions: number, success: boolean): boolean =>
    wanted.dimensions.has(dimensions) && (wanted.success === undefined || wanted.success === success)

const partsOf = ({ level, run }: Run): ReadonlyArray<Run> =>
  Array.from({ length: fanOut }, (_, i) => ({ level: level - 1, run: run * fanOut + i }))

/** Numbers, in whichever order, as ranges that hold few others. */
export const rangesOf = (numbers: ReadonlyArray<number>): ReadonlyArray<Range> => {
  const ranges: Array<{ from: number; to: number }> = []
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last !== undefined && number < last.to + gapMax) last.to = number + 1
    else ranges.push({ from: number, to: number + 1 })
  }
  return ranges
}
