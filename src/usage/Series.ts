/**
 * A tenant's usage over time: a bucket for each hour or day of a window, and a series for each model, account, or whatever else is asked
 * for. It is summed from the rollups and the tail, never from records.
 *
 * Where the specification is silent:
 * - Hours are kept by account, model and endpoint; of applications and providers only days are.
 * - The dearest series are named; all others are one, without a key.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Context, Effect, Layer } from "effect"
import { tenantOf } from "../kernel/Ids.ts"
import type { AccountId, TenantId } from "../kernel/Ids.ts"
import { day, hour } from "../kernel/Moment.ts"
import type { Nano } from "../kernel/Money.ts"
import { turn } from "../kernel/Pieces.ts"
import { tailsOf, tailsWith } from "../ledger/Tails.ts"
import type { Grain, SeriesBy } from "./Usage.ts"

export interface SeriesContract {
  /** The calls made with the tenant's credentials, whoever paid; every bucket of the window, those without calls too. */
  readonly of: (asked: SeriesAsked) => Effect.Effect<SeriesSet>
  /** The calls of an account by the tenant that paid, in whichever tenant they were made. */
  readonly byPayer: (asked: PayersAsked) => Effect.Effect<SeriesSet>
}

export interface SeriesAsked {
  readonly tenant_id: TenantId
  readonly grain: Grain
  readonly by: SeriesBy
  /** Milliseconds since 1970, each at the beginning of a bucket. */
  readonly start: number
  readonly end: number
  /** How many series are named at the most. */
  readonly top: number
}

/** The same of an account's calls by days, which are all that is kept of payers. */
export interface PayersAsked extends Omit<SeriesAsked, "tenant_id" | "grain" | "by"> {
  readonly account_id: AccountId
}

/** A bucket each: money in nano-USD. */
export interface Columns {
  readonly cost: BigInt64Array
  readonly requests: Float64Array
  readonly failures: Float64Array
  readonly tokens: Float64Array
}

export interface Total {
  cost: Nano
  requests: number
  failures: number
  tokens: number
}

export interface OneSeries extends Columns {
  /** `null`: all that are not named. */
  readonly key: string | null
  readonly total: Readonly<Total>
}

export interface SeriesSet extends Buckets {
  readonly by: SeriesBy | "payer"
  /** The dearest first, what is not named last. */
  readonly series: ReadonlyArray<OneSeries>
  readonly total: Readonly<Total>
}

/** The buckets of a window, and how many series are named of them. */
type Buckets = Pick<SeriesAsked, "grain" | "start" | "end">
type Ranking = Buckets & Pick<SeriesSet, "by"> & Pick<SeriesAsked, "top">

export const millisOf: Readonly<Record<Grain, number>> = { hour, day }

/** How many buckets a window may have: a year of hours. */
export const bucketsMax = 366 * 24

export class Series extends Context.Tag("tollgate/usage/Series")<Series, SeriesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Series, make))
}

/** The column that tells series apart, in the rollups and in dimensions; and which rollup has it. */
const sources: Readonly<Record<SeriesBy, { readonly column: string; readonly rollup: "caller" | "tenant" }>> = {
  model: { column: "model", rollup: "caller" },
  account: { column: "account_id", rollup: "caller" },
  endpoint: { column: "endpoint", rollup: "caller" },
  none: { column: "''", rollup: "caller" },
  application: { column: "application_id", rollup: "tenant" },
  provider: { column: "provider", rollup: "tenant" }
}

/** Whether there are hours of it. */
export const hasHours = (by: SeriesBy): boolean => sources[by].rollup === "caller"

/** What a key comes to in a bucket. */
interface Sum {
  readonly at: number
  readonly key: string
  readonly requests: number
  readonly successes: number
  readonly tokens: number
  readonly cost: string
}

interface Row extends Sum {
  /** Of the rollup. */
  readonly rows: number
}

/** How many rows of rollups a statement should read: some milliseconds of them. */
const rowsWanted = 4_000
/** How many buckets are read first, when it is not known how many rows that are. */
const bucketsFirst = 100

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  // Long windows of large tenants take turns.
  const walks = yield* Effect.makeSemaphore(4)

  const piece = (asked: SeriesAsked, from: number, to: number): Effect.Effect<ReadonlyArray<Row>> => {
    const { by, grain, tenant_id } = asked
    const width = millisOf[grain]
    const { column, rollup } = sources[by]
    const kept = rollup === "caller" ? byCaller(sql, asked, from, to) : byTenant(sql, asked, from, to)
    const inRecord = column === "''" ? column : `d.${column}`
    return Effect.orDie(
      sql<Row>`SELECT at, key, SUM(kept) AS rows, SUM(requests) AS requests, SUM(successes) AS successes,
          SUM(prompt_tokens + completion_tokens) AS tokens, CAST(SUM(cost) AS TEXT) AS cost FROM (
          SELECT start AS at, ${sql.literal(column)} AS key, 1 AS kept, requests, successes, prompt_tokens, completion_tokens, cost
          FROM ${kept}
          UNION ALL SELECT r.at - r.at % ${sql.literal(`${width}`)}, ${sql.literal(inRecord)}, 0, 1, r.success, r.prompt_tokens,
            r.completion_tokens, r.cost FROM ${tailsOf(sql, sql`SELECT ${tenant_id} AS id`)}
          WHERE r.at >= ${from} AND r.at < ${to}
        ) sums GROUP BY at, key`
    )
  }

  const of: SeriesContract["of"] = Effect.fn("Series.of")(function* (asked) {
    const { end, grain, start } = asked
    const width = millisOf[grain]
    const found: Array<Row> = []
    let buckets = bucketsFirst
    for (let from = start; from < end;) {
      if (from > start) yield* turn
      const to = Math.min(end, from + buckets * width)
      const rows = yield* piece(asked, from, to)
      for (const row of rows) found.push(row)
      const read = rows.reduce((sum, row) => sum + row.rows, 0)
      buckets = Math.max(1, Math.floor((rowsWanted * (to - from)) / width / Math.max(1, read)))
      from = to
    }
    return ranked(asked, found)
  }, walks.withPermits(1))

  const byPayer: SeriesContract["byPayer"] = Effect.fn("Series.byPayer")(function* (asked) {
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
    const named = rows.map((row) => ({ ...row, key: tenantOf(row.key) }))
    return ranked({ ...asked, grain: "day", by: "payer" }, named)
  }, walks.withPermits(1))

  return { of, byPayer } satisfies SeriesContract
})

/** The rows of all accounts of the tenant: from one to the next by index, since the period stands behind the account in it. */
const byCaller = (sql: SqlClient, { grain, tenant_id }: SeriesAsked, from: number, to: number): Fragment => {
  const next = (behind: Fragment) => sql`SELECT account_id FROM tollgate_usage_by_caller
    WHERE tenant_id = ${tenant_id} ${behind} ORDER BY account_id LIMIT 1`
  return sql`(WITH RECURSIVE accounts (id) AS (
      SELECT (${next(sql.literal(""))})
      UNION ALL SELECT (${next(sql.literal("AND account_id > id"))}) FROM accounts WHERE id IS NOT NULL
    ) SELECT c.* FROM accounts a CROSS JOIN tollgate_usage_by_caller c ON c.tenant_id = ${tenant_id} AND c.account_id = a.id
      AND c.grain = ${sql.literal(`${millisOf[grain]}`)} AND c.start >= ${from} AND c.start < ${to}
    ) c`
}

const byTenant = (sql: SqlClient, { tenant_id }: SeriesAsked, from: number, to: number): Fragment =>
  sql`tollgate_usage_by_tenant WHERE tenant_id = ${tenant_id} AND start >= ${from} AND start < ${to}`

const nothing = (): Total => ({ cost: 0n, requests: 0, failures: 0, tokens: 0 })

const add = (total: Total, row: Sum): void => {
  total.cost += BigInt(row.cost)
  total.requests += row.requests
  total.failures += row.requests - row.successes
  total.tokens += row.tokens
}

const ranked = (asked: Ranking, rows: ReadonlyArray<Sum>): SeriesSet => {
  const totals = new Map<string, Total>()
  const whole = nothing()
  for (const row of rows) {
    const total = totals.get(row.key) ?? nothing()
    totals.set(row.key, total)
    add(total, row)
    add(whole, row)
  }
  const keys = [...totals.keys()].sort((a, b) => order(totals.get(b)!, totals.get(a)!) || (a < b ? -1 : 1))
  const named = new Map(keys.slice(0, asked.top).map((key) => [key, columnsOf(asked)]))
  const others = keys.length > asked.top ? columnsOf(asked) : undefined
  const rest = nothing()
  for (const row of rows) {
    const columns = named.get(row.key)
    if (columns === undefined) add(rest, row)
    put(asked, columns ?? others!, row)
  }
  const { by, end, grain, start } = asked
  const series: Array<OneSeries> = [...named].map(([key, columns]) => ({ key, total: totals.get(key)!, ...columns }))
  if (others !== undefined) series.push({ key: null, total: rest, ...others })
  return { by, grain, start, end, series, total: whole }
}

const order = (a: Total, b: Total): number => (a.cost === b.cost ? a.requests - b.requests : a.cost > b.cost ? 1 : -1)

const columnsOf = ({ end, grain, start }: Buckets): Columns => {
  const buckets = (end - start) / millisOf[grain]
  return {
    cost: new BigInt64Array(buckets),
    requests: new Float64Array(buckets),
    failures: new Float64Array(buckets),
    tokens: new Float64Array(buckets)
  }
}

const put = ({ grain, start }: Buckets, { cost, failures, requests, tokens }: Columns, row: Sum): void => {
  const i = (row.at - start) / millisOf[grain]
  cost[i]! += BigInt(row.cost)
  requests[i]! += row.requests
  failures[i]! += row.requests - row.successes
  tokens[i]! += row.tokens
}
