/**
 * What upstreams served over all tenants: sums by day, provider and model. The rollups know a tenant's days by provider or by model and not
 * by both, so these are summed from the records, which are in the order of time: a day is a range of rows, found by a search and read in
 * pieces. A day that is over changes no more, and is remembered; each node reads those of the last quarter soon after its start.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import * as Loop from "../kernel/Loop.ts"
import { day } from "../kernel/Moment.ts"
import type { Nano } from "../kernel/Money.ts"
import { inPieces } from "../kernel/Pieces.ts"
import { withDimensions } from "../ledger/Dimensions.ts"

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
  /** Reads the days that are over before somebody asks, one in a turn, the latest first. `layerJobs` runs it. */
  readonly job: Loop.Job
}

export class Daily extends Context.Tag("tollgate/usage/Daily")<Daily, DailyContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Daily, make))
  static readonly layerJobs = Loop.layer(Daily, ({ job }) => [job])
}

/** How far rows may be from the order of time: clocks of nodes differ, and a batch is committed after its rows are dated. */
const skew = 10 * 60_000
/** When a day counts as over, after its end. */
const settled = 60 * 60_000
/** How many days are remembered, and how many of them are read before somebody asks. */
const rememberedMax = 400
const aheadMax = 92

/** The pauses behind a turn of the job that read a day, and one that found none to be read. */
const pauseBusy = "250 millis"
const pauseIdle = "10 minutes"

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

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  /** One after the other: each reads many rows. */
  const alone = yield* Effect.makeSemaphore(1)
  const remembered = new Map<number, ReadonlyArray<DailySum>>()

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

  // As lists, which costs the driver less than half of what objects do.
  const piece = (start: number, end: number) => (range: { readonly from: number; readonly to: number }) =>
    Effect.map(
      sql`SELECT r.at - r.at % ${sql.literal(`${day}`)}, d.provider, d.model, COUNT(*), SUM(r.success), SUM(r.prompt_tokens),
        SUM(r.completion_tokens), SUM(r.units), CAST(SUM(r.cost) AS TEXT), CAST(SUM(r.uncollected) AS TEXT)
      FROM tollgate_usage_records r ${sql.literal(withDimensions)}
      WHERE r.seq >= ${range.from} AND r.seq < ${range.to} AND r.at >= ${start} AND r.at < ${end}
      GROUP BY 1, 2, 3`.values,
      (rows) => (rows as ReadonlyArray<unknown> as ReadonlyArray<SumRow>).map(sumOf)
    )

  /** Sums the days from `first` to `last` from their records. */
  const read = Effect.fnUntraced(function* (first: number, last: number) {
    const [start, end] = [first, last + day]
    const range = { from: yield* rowAt(start - skew), to: yield* rowAt(end + skew) }
    const sums = new Map<string, { -readonly [Name in keyof DailySum]: DailySum[Name] }>()
    for (const one of (yield* inPieces(range, piece(start, end))).flat()) {
      const key = `${one.day} ${one.provider}\n${one.model}`
      const sum = sums.get(key)
      if (sum === undefined) sums.set(key, one)
      else add(sum, one)
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

  /** The first day that has records, if there are any. */
  const firstDay = Effect.gen(function* () {
    const [row] = yield* sql<{ readonly at: number }>`SELECT at FROM tollgate_usage_records ORDER BY seq LIMIT 1`
    return row === undefined ? undefined : row.at - skew - ((row.at - skew) % day)
  })

  const turnOfJob = Effect.gen(function* () {
    const first = yield* firstDay
    if (first === undefined) return pauseIdle
    const over = (yield* Clock.currentTimeMillis) - settled
    let one = over - (over % day) - day
    const least = Math.max(first, one - (aheadMax - 1) * day)
    while (one >= least && remembered.has(one)) one -= day
    if (one < least) return pauseIdle
    yield* alone.withPermits(1)(sums({ first: one, last: one }))
    return pauseBusy
  })

  return {
    sums: (days) => alone.withPermits(1)(sums(days)),
    job: { name: "daily sums", turn: turnOfJob, everywhere: true }
  } satisfies DailyContract
})

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const sumOf = ([
  day,
  provider,
  model,
  requests,
  successes,
  prompt_tokens,
  completion_tokens,
  units,
  cost,
  uncollected
]: SumRow): DailySum => ({
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
})

const add = (sum: { -readonly [Name in keyof DailySum]: DailySum[Name] }, more: DailySum): void => {
  sum.requests += more.requests
  sum.failures += more.failures
  sum.prompt_tokens += more.prompt_tokens
  sum.completion_tokens += more.completion_tokens
  sum.units += more.units
  sum.charged += more.charged
  sum.uncollected += more.uncollected
}
