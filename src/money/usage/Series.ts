/**
 * Computes a tenant's usage over time: a series for each model, account or other key, with a bucket for each hour or day of a window. The sums come
 * from the stored totals (`Totals`) and from the records that the totals do not cover yet.
 *
 * Where the specification is silent:
 * - The series with the highest cost are named. All others are combined into one series without a key.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import { tenantOf } from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { valueIn } from "../../kernel/Labels.ts"
import { day, hour } from "../../kernel/Moment.ts"
import type { Nano } from "../../kernel/Money.ts"
import { turn } from "../../kernel/Pieces.ts"
import { plus } from "../../books/ledger/totals/RecordOrder.ts"
import { tailsWith } from "../../books/ledger/rows/RollupLag.ts"
import * as Totals from "../../books/ledger/totals/Totals.ts"
import { exactMax, valueOf } from "../../books/ledger/totals/Varints.ts"
import type { Value } from "../../books/ledger/totals/Varints.ts"
import { dimensionsBy, dimensionsPaid } from "./Filtered.ts"
import type { LabelFilter } from "./Filtered.ts"
import * as Numbers from "./Numbers.ts"
import type { Grain, SeriesBy, TagSeries } from "./Usage.ts"

export interface SeriesContract {
  /** Returns the series of the calls made with the tenant's credentials, including buckets without calls. */
  readonly of: (asked: SeriesAsked) => Effect.Effect<SeriesSet>
  /** Returns the series of the calls that the tenant's billing account paid for, regardless of the calling tenant. */
  readonly ofTeam: (asked: SeriesAsked) => Effect.Effect<SeriesSet>
  /** Returns the series of an account's calls in all tenants, by paying tenant. */
  readonly byPayer: (asked: PayersAsked) => Effect.Effect<SeriesSet>
}

export interface SeriesAsked {
  readonly tenant_id: TenantId
  readonly grain: Grain
  readonly by: SeriesBy
  /** The labels of the calls to include. Defaults to all calls. */
  readonly filter?: LabelFilter | undefined
  /** Unix time in milliseconds, at the start of a bucket. */
  readonly start: number
  readonly end: number
  /** The maximum number of named series. */
  readonly top: number
}

/** The query of `byPayer`. Its grain is always a day, the only grain of the payer rollup. */
export interface PayersAsked extends Omit<SeriesAsked, "tenant_id" | "grain" | "by" | "filter"> {
  readonly account_id: AccountId
}

/** One value per bucket. Money is in nano-USD. */
export interface Columns {
  readonly cost: BigInt64Array
  readonly requests: Float64Array
  readonly failures: Float64Array
  readonly tokens: Float64Array
}

export interface Total {
  readonly cost: Nano
  readonly requests: number
  readonly failures: number
  readonly tokens: number
}

export interface OneSeries extends Columns {
  /** Null for the series that combines all others. */
  readonly key: string | null
  readonly total: Total
}

export interface SeriesSet extends Buckets {
  readonly by: SeriesBy
  /** The series, highest cost first. The combined series is last. */
  readonly series: ReadonlyArray<OneSeries>
  readonly total: Total
}

/** A series' window and the width of its buckets. */
type Buckets = Pick<SeriesAsked, "grain" | "start" | "end">

export const millisOf: Readonly<Record<Grain, number>> = { hour, day }

/** The maximum number of buckets: a year of hours. */
export const bucketsMax = 366 * 24

export class Series extends Context.Tag("tollgate/usage/Series")<Series, SeriesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Series, make))
}

/** The column of `usage_dimensions` that contains the key of a series. */
const columns: Readonly<Record<Exclude<SeriesBy, TagSeries>, string>> = {
  model: "model",
  account: "account_id",
  endpoint: "endpoint",
  none: "''",
  application: "application_id",
  provider: "provider",
  payer: "billing_source_tenant_id",
  end_user: "end_user",
  run: "run_id"
}

/** Returns the tag's name for a series by tag, or `undefined` for any other series. */
const tagOf = (by: SeriesBy): string | undefined => (isTagSeries(by) ? by.slice("tag:".length) : undefined)
const isTagSeries = (by: SeriesBy): by is TagSeries => by.startsWith("tag:")

interface Sum {
  readonly at: number
  readonly key: string
  readonly requests: number
  readonly successes: number
  readonly tokens: number
  readonly cost: string
}

interface Parts {
  readonly sql: SqlClient
  readonly numbers: ReturnType<typeof Numbers.make>
  readonly walks: Effect.Semaphore
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  // Limits concurrent walks through large tenants' long windows.
  const parts: Parts = { sql, numbers: Numbers.make(sql), walks: yield* Effect.makeSemaphore(4) }
  return { of: of(parts), ofTeam: ofTeam(parts), byPayer: byPayer(parts) } satisfies SeriesContract
})

const keysOf = Effect.fnUntraced(function* (sql: SqlClient, by: SeriesBy, dimensions: Iterable<number>) {
  const rows = yield* sql<{ readonly number: number; readonly key: string }>`
      SELECT number, ${sql.literal(isTagSeries(by) ? "tags" : columns[by])} AS key FROM tollgate_usage_dimensions
      WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(${JSON.stringify([...dimensions])}))`
  const tag = tagOf(by)
  return new Map(rows.map(({ key, number }) => [number, tag === undefined ? key : valueIn(key, tag)]))
})

/** A tenant with records to sum, and the dimensions to include. `undefined` includes all dimensions. */
interface Source {
  readonly tenant: TenantId
  readonly wanted: ReadonlySet<number> | undefined
}

/** Finds the part of a source that is in the window. */
const partOf = Effect.fnUntraced(function* ({ numbers, sql }: Parts, { end, start }: Buckets, source: Source) {
  const range = yield* numbers.range(source.tenant, { start, end })
  const { rest, runs } = Totals.overlappingRuns(range, yield* Totals.written(sql, source.tenant))
  return { ...source, runs, tail: yield* Totals.sumsAmong(sql, source.tenant, rest) }
})

/**
 * Sums the sources in two passes. The first ranks the keys, and needs only the totals of complete runs, not their hours. The second distributes the
 * named keys, and all other keys together, over the buckets.
 */
const computeSeries = Effect.fnUntraced(function* (parts: Parts, asked: SeriesAsked, sources: ReadonlyArray<Source>) {
  const { sql } = parts
  const { by, end, start, top } = asked
  const [first, behind] = [Totals.hourOf(start), Totals.hourOf(end)]
  const restrictTo =
    ({ wanted }: Source, within: boolean, emit: Totals.Give): Totals.Give =>
    (hour, dimensions, requests, failures, tokens, cost) => {
      if ((!within || (hour >= first && hour < behind)) && wanted?.has(dimensions) !== false)
        emit(hour, dimensions, requests, failures, tokens, cost)
    }
  const found = yield* Effect.forEach(sources, (source) => partOf(parts, asked, source))
  const ranking = new Ranking()
  for (const part of found) {
    const [whole, cut] = [true, false].map((is) => part.runs.filter(({ isWhole }) => isWhole === is))
    const [all, within] = [false, true].map((is) => restrictTo(part, is, ranking.add))
    yield* Totals.each(sql, part.tenant, whole!, "totals", (bytes) => Totals.decode(bytes, all!))
    yield* Totals.each(sql, part.tenant, cut!, "sums", (bytes) => Totals.decode(bytes, within!))
    for (const bytes of part.tail) Totals.decode(bytes, within!)
  }
  const bucketSums = new BucketSums(asked, ranking.keys(yield* keysOf(sql, by, ranking.dimensions()), top))
  for (const part of found) {
    const within = restrictTo(part, true, bucketSums.add)
    yield* Totals.each(sql, part.tenant, part.runs, "sums", (bytes) => Totals.decode(bytes, within))
    for (const [i, bytes] of part.tail.entries()) {
      if (i > 0) yield* turn
      Totals.decode(bytes, within)
    }
  }
  return yield* setOf(bucketSums, by)
})

const of = (parts: Parts): SeriesContract["of"] =>
  Effect.fn("Series.of")(
    function* (asked) {
      const { filter, tenant_id: tenant } = asked
      const dimensionFilter = filter === undefined ? undefined : yield* dimensionsBy(parts.sql, tenant, filter)
      return yield* computeSeries(parts, asked, [{ tenant, wanted: dimensionFilter }])
    },
    parts.walks.withPermits(1),
    Effect.orDie
  )

const ofTeam = (parts: Parts): SeriesContract["ofTeam"] =>
  Effect.fn("Series.ofTeam")(
    function* (asked) {
      const paid = yield* dimensionsPaid(parts.sql, asked.tenant_id, asked.filter ?? {})
      return yield* computeSeries(
        parts,
        asked,
        [...paid].map(([tenant, wanted]) => ({ tenant, wanted }))
      )
    },
    parts.walks.withPermits(1),
    Effect.orDie
  )

const byPayer = ({ sql, walks }: Parts): SeriesContract["byPayer"] =>
  Effect.fn("Series.byPayer")(function* (asked) {
    const { account_id, end, start } = asked
    const rows = yield* Effect.orDie(
      sql<Sum>`SELECT at, payer AS key, SUM(requests) AS requests, SUM(successes) AS successes,
          SUM(prompt_tokens + completion_tokens) AS tokens, CAST(SUM(cost) AS TEXT) AS cost FROM (
          SELECT start AS at, billing_account_id AS payer, requests, successes, prompt_tokens, completion_tokens, cost
          FROM tollgate_usage_by_payer WHERE account_id = ${account_id} AND start >= ${start} AND start < ${end}
          UNION ALL SELECT r.at - r.at % ${sql.literal(`${day}`)}, d.billing_account_id, 1, r.success, r.prompt_tokens,
            r.completion_tokens, r.cost FROM ${tailsWith(sql, "account_id", account_id)}
          WHERE +d.account_id = ${account_id} AND r.at >= ${start} AND r.at < ${end}
        ) sums GROUP BY at, payer`
    )
    const ranking = new Ranking()
    const payers = [...new Set(rows.map(({ key }) => key))]
    const places = new Map(payers.map((payer, place) => [payer, place]))
    const keys = new Map(payers.map((payer, place) => [place, tenantOf(payer) as string]))
    const sums = (emit: Totals.Give) => {
      for (const { at, cost, key, requests, successes, tokens } of rows) {
        emit(Totals.hourOf(at), places.get(key)!, requests, requests - successes, tokens, valueOf(BigInt(cost)))
      }
    }
    sums(ranking.add)
    const bucketSums = new BucketSums({ ...asked, grain: "day" }, ranking.keys(keys, asked.top))
    sums(bucketSums.add)
    return yield* setOf(bucketSums, "payer")
  }, walks.withPermits(1))

/** Sums amounts exactly. The sums are doubles while doubles are exact, because bigints are ten times slower. */
class Amounts {
  private readonly low: Float64Array
  private readonly high: BigInt64Array

  constructor(places: number) {
    this.low = new Float64Array(places)
    this.high = new BigInt64Array(places)
  }

  add(place: number, amount: Value): void {
    if (typeof amount === "bigint") return void (this.high[place]! += amount)
    const sum = this.low[place]! + amount
    if (sum <= exactMax) return void (this.low[place] = sum)
    this.high[place]! += BigInt(this.low[place]!)
    this.low[place] = amount
  }

  amounts(from: number, to: number): BigInt64Array {
    return this.high.subarray(from, to).map((high, place) => high + BigInt(this.low[from + place]!))
  }
}

/** Sums each dimension over the window to determine the named series. */
class Ranking {
  private readonly sums = new Map<number, { cost: Value; requests: number }>()

  readonly add: Totals.Give = (_, dimensions, requests, _failures, _tokens, cost) => {
    const sum = this.sums.get(dimensions)
    if (sum === undefined) return void this.sums.set(dimensions, { cost, requests })
    sum.cost = plus(sum.cost, cost)
    sum.requests += requests
  }

  dimensions(): Iterable<number> {
    return this.sums.keys()
  }

  /** Returns the most expensive keys and each dimension's index among them. All other keys share the index `named.length`. */
  keys(keyOf: ReadonlyMap<number, string>, top: number): Keys {
    const byKey = new Map<string, { cost: Value; requests: number }>()
    for (const [dimensions, { cost, requests }] of this.sums) {
      const key = keyOf.get(dimensions)!
      const sum = byKey.get(key) ?? { cost: 0, requests: 0 }
      byKey.set(key, { cost: plus(sum.cost, cost), requests: sum.requests + requests })
    }
    const order = [...byKey].sort(
      ([a, x], [b, y]) => (x.cost === y.cost ? y.requests - x.requests : y.cost > x.cost ? 1 : -1) || (a < b ? -1 : 1)
    )
    const named = order.slice(0, top).map(([key]) => key)
    const places = new Map(named.map((key, place) => [key, place]))
    return {
      named,
      hasOthers: order.length > top,
      placeOf: new Map([...this.sums.keys()].map((one) => [one, places.get(keyOf.get(one)!) ?? named.length]))
    }
  }
}

interface Keys {
  readonly named: ReadonlyArray<string>
  readonly hasOthers: boolean
  readonly placeOf: ReadonlyMap<number, number>
}

/** Sums each bucket, for each named key and for all others together. */
class BucketSums {
  readonly buckets: Buckets
  readonly keys: Keys
  /** The number of buckets, and the number of hours in each. */
  readonly length: number
  private readonly hours: number
  private readonly first: number
  private readonly cost: Amounts
  private readonly requests: Float64Array
  private readonly failures: Float64Array
  private readonly tokens: Float64Array

  constructor(buckets: Buckets, keys: Keys) {
    const { end, grain, start } = buckets
    this.buckets = buckets
    this.keys = keys
    this.length = (end - start) / millisOf[grain]
    this.hours = millisOf[grain] / hour
    this.first = Totals.hourOf(start)
    const places = this.length * (keys.named.length + 1)
    this.cost = new Amounts(places)
    this.requests = new Float64Array(places)
    this.failures = new Float64Array(places)
    this.tokens = new Float64Array(places)
  }

  readonly add: Totals.Give = (hour, dimensions, requests, failures, tokens, cost) => {
    const place = this.keys.placeOf.get(dimensions)! * this.length + Math.floor((hour - this.first) / this.hours)
    this.cost.add(place, cost)
    this.requests[place]! += requests
    this.failures[place]! += failures
    this.tokens[place]! += tokens
  }

  one(key: string | null, place: number): OneSeries {
    const [from, to] = [place * this.length, (place + 1) * this.length]
    const columns: Columns = {
      cost: this.cost.amounts(from, to),
      requests: this.requests.subarray(from, to),
      failures: this.failures.subarray(from, to),
      tokens: this.tokens.subarray(from, to)
    }
    return { key, total: totalOf(columns), ...columns }
  }
}

/** Series with more buckets than this yield to other work. */
export const longMin = 1000

/** Builds the series, and yields to other work before each long series. */
const setOf = Effect.fnUntraced(function* (bucketSums: BucketSums, by: SeriesSet["by"]) {
  const { end, grain, start } = bucketSums.buckets
  const { hasOthers, named } = bucketSums.keys
  const keys = hasOthers ? [...named, null] : named
  const series: Array<OneSeries> = []
  for (const [place, key] of keys.entries()) {
    if (bucketSums.length > longMin) yield* turn
    series.push(bucketSums.one(key, place))
  }
  const total = series.map((one) => one.total).reduce(addTotals, { cost: 0n, requests: 0, failures: 0, tokens: 0 })
  return { by, grain, start, end, series, total } satisfies SeriesSet
})

const totalOf = ({ cost, failures, requests, tokens }: Columns): Total => ({
  cost: cost.reduce((sum, one) => sum + one, 0n),
  requests: requests.reduce((sum, one) => sum + one, 0),
  failures: failures.reduce((sum, one) => sum + one, 0),
  tokens: tokens.reduce((sum, one) => sum + one, 0)
})

const addTotals = (a: Total, b: Total): Total => ({
  cost: a.cost + b.cost,
  requests: a.requests + b.requests,
  failures: a.failures + b.failures,
  tokens: a.tokens + b.tokens
})
