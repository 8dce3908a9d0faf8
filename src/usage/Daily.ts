/**
 * What upstreams served over all tenants: sums by day, provider and model. The rollups know a tenant's days by provider or by model and not
 * by both, so these are summed from the records, which are in the order of time: a day is a range of rows, found by a search and read in
 * pieces. A day that is over changes no more, and is remembered.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { day } from "../kernel/Moment.ts"
import type { Nano } from "../kernel/Money.ts"
import { inPieces } from "../kernel/Pieces.ts"

export interface DailySum {
  /** The first instant of the day, in UTC. */
  readonly day: number
  readonly provider: string
  readonly model: string
  readonly requests: number
  readonly failures: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  /** What was charged, and what balances could not pay of it. */
  readonly charged: Nano
  readonly uncollected: Nano
}

export interface DailyContract {
  /** Of the days from `first` to `last`, both included (their first instants); by day, provider and model. */
  readonly sums: (days: { readonly first: number; readonly last: number }) => Effect.Effect<ReadonlyArray<DailySum>>
}

export class Daily extends Context.Tag("tollgate/usage/Daily")<Daily, DailyContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Daily, make))
}

/** How far rows may be from the order of time: clocks of nodes differ, and a batch is committed after its rows are dated. */
const skew = 10 * 60_000
/** When a day counts as over, after its end. */
const settled = 60 * 60_000
/** How many days are remembered. */
const rememberedMax = 400

interface Row {
  readonly dimensions: number
  readonly day: number
  readonly requests: number
  readonly successes: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  readonly cost: string
  readonly uncollected: string
}

interface Served {
  readonly provider: string
  readonly model: string
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  /** One after the other: each reads many rows. */
  const alone = yield* Effect.makeSemaphore(1)
  const remembered = new Map<number, ReadonlyArray<DailySum>>()
  /** Dimensions never change. */
  const served = new Map<number, Served>()

  /** The first row at or after an instant, if rows were in the order of time. */
  const rowAt = Effect.fnUntraced(function* (at: number) {
    const [ends] = yield* sql<{ first: number | null; last: number | null }>`
      SELECT (SELECT MIN(seq) FROM tollgate_usage_records) AS first, (SELECT MAX(seq) FROM tollgate_usage_records) AS last`
    let low = ends?.first ?? 1
    let high = (ends?.last ?? 0) + 1
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const [row] = yield* sql<{ seq: number; at: number }>`SELECT seq, at FROM tollgate_usage_records
        WHERE seq >= ${middle} ORDER BY seq LIMIT 1`
      if (row === undefined || row.at >= at) high = middle
      else low = row.seq + 1
    }
    return low
  })

  const piece = (start: number, end: number) => (range: { readonly from: number; readonly to: number }) =>
    sql<Row>`SELECT dimensions, at - at % ${sql.literal(`${day}`)} AS day, COUNT(*) AS requests, SUM(success) AS successes,
        SUM(prompt_tokens) AS prompt_tokens, SUM(completion_tokens) AS completion_tokens, SUM(units) AS units,
        CAST(SUM(cost) AS TEXT) AS cost, CAST(SUM(uncollected) AS TEXT) AS uncollected
      FROM tollgate_usage_records WHERE seq >= ${range.from} AND seq < ${range.to} AND at >= ${start} AND at < ${end}
      GROUP BY 1, 2`

  const learn = Effect.fnUntraced(function* (numbers: ReadonlySet<number>) {
    const unknown = [...numbers].filter((number) => !served.has(number))
    if (unknown.length === 0) return
    const rows = yield* sql<
      Served & { readonly number: number }
    >`SELECT number, provider, model FROM tollgate_usage_dimensions
      WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(${JSON.stringify(unknown)}))`
    for (const { model, number, provider } of rows) served.set(number, { provider, model })
  })

  /** Sums the days from `first` to `last` from their records. */
  const read = Effect.fnUntraced(function* (first: number, last: number) {
    const [start, end] = [first, last + day]
    const range = { from: yield* rowAt(start - skew), to: yield* rowAt(end + skew) }
    const rows = (yield* inPieces(range, piece(start, end))).flat()
    yield* learn(new Set(rows.map(({ dimensions }) => dimensions)))
    const sums = new Map<string, { -readonly [Name in keyof DailySum]: DailySum[Name] }>()
    for (const row of rows) {
      const { model, provider } = served.get(row.dimensions)!
      const key = `${row.day} ${provider}\n${model}`
      const sum = sums.get(key)
      if (sum === undefined) sums.set(key, sumOf(row, provider, model))
      else add(sum, row)
    }
    return [...sums.values()]
  })

  const remember = (from: number, last: number, sums: ReadonlyArray<DailySum>, now: number): void => {
    for (let one = from; one <= last; one += day) {
      if (one + day + settled > now) continue
      if (remembered.size >= rememberedMax) remembered.delete(remembered.keys().next().value!)
      remembered.set(
        one,
        sums.filter((sum) => sum.day === one)
      )
    }
  }

  const sums: DailyContract["sums"] = Effect.fn("Daily.sums")(function* ({ first, last }) {
    const now = yield* Clock.currentTimeMillis
    const found: Array<DailySum> = []
    for (let one = first; one <= last;) {
      const known = remembered.get(one)
      if (known !== undefined) {
        found.push(...known)
        one += day
        continue
      }
      let end = one
      while (end < last && !remembered.has(end + day)) end += day
      const fresh = yield* read(one, end)
      remember(one, end, fresh, now)
      found.push(...fresh)
      one = end + day
    }
    return found.toSorted((a, b) => a.day - b.day || compare(a.provider, b.provider) || compare(a.model, b.model))
  }, Effect.orDie)

  return { sums: (days) => alone.withPermits(1)(sums(days)) } satisfies DailyContract
})

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const sumOf = (row: Row, provider: string, model: string): DailySum => ({
  day: row.day,
  provider,
  model,
  requests: row.requests,
  failures: row.requests - row.successes,
  prompt_tokens: row.prompt_tokens,
  completion_tokens: row.completion_tokens,
  units: row.units,
  charged: BigInt(row.cost),
  uncollected: BigInt(row.uncollected)
})

const add = (sum: { -readonly [Name in keyof DailySum]: DailySum[Name] }, row: Row): void => {
  sum.requests += row.requests
  sum.failures += row.requests - row.successes
  sum.prompt_tokens += row.prompt_tokens
  sum.completion_tokens += row.completion_tokens
  sum.units += row.units
  sum.charged += BigInt(row.cost)
  sum.uncollected += BigInt(row.uncollected)
}
