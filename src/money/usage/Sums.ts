/** Sums usage over a window. Each statement reads the rollups together with the rollup lag (`RollupLag`), so the sums are exact. */
import { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Context, Effect, Layer } from "effect"
import type { Actor } from "../../kernel/Caller.ts"
import { billingAccountOf, tenantOf } from "../../kernel/Ids.ts"
import type { AccountId, BillingAccountId, TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { inSlices, turn } from "../../kernel/Pieces.ts"
import type { Range } from "../../kernel/Pieces.ts"
import { tailsOf, tailsWith } from "../../books/ledger/rows/RollupLag.ts"
import * as KeyTotals from "../../books/ledger/totals/KeyTotals.ts"
import type { Filter, LabelFilter } from "./Filtered.ts"
import * as LabelledSums from "./LabelledSums.ts"
import * as Numbers from "./Numbers.ts"
import { dayOfRecord, periodOf, pointOf, recordColumns, sumColumns, sumOfSums, sumSelection } from "./Points.ts"
import type { PointRow } from "./Points.ts"
import type { DataPoint, Rollup, RollupName, Summary, Totals, UsageType } from "./Usage.ts"
import { partsOf, wholeDays } from "./Window.ts"
import type { Part, Window } from "./Window.ts"

/** Money is in nano-USD; times are Unix times in milliseconds. */
export interface SumsContract {
  /** Sums the calls of the caller's account in the credential's tenant, in a window exact to the millisecond. */
  readonly summary: (asked: SummaryAsked) => Effect.Effect<Summary>
  /** Sums all calls made with the tenant's credentials, in whole UTC days. Periods without calls are absent. */
  readonly rollup: (asked: RollupAsked) => Effect.Effect<Rollup>
  /** Sums an account's calls across all tenants, grouped by payer, in whole UTC days. */
  readonly byPayer: (asked: { readonly account_id: AccountId; readonly window: Window }) => Effect.Effect<PayerSums>
  /** Sums all calls that the tenant's billing account paid for. */
  readonly paid: (asked: PaidAsked) => Effect.Effect<Paid>
}

export interface SummaryAsked {
  readonly caller: Actor
  readonly window: Window
  /** Restricts the sums to this application's calls. Whole hours and days come from saved totals, the rest from the records. */
  readonly application_id?: string | undefined
  /** Restricts the sums to this run's calls. The sums come from the records. */
  readonly run_id?: string | undefined
}

/** The query of `rollup`. An absent filter matches every call. */
export interface RollupAsked {
  readonly tenant_id: TenantId
  readonly rollup: RollupName
  readonly window: Window
  /** An empty string selects calls by user token. */
  readonly application_id?: string | undefined
  readonly usage_type?: UsageType | undefined
  readonly provider?: string | undefined
  /** Restricts the sums to calls with these labels. The sums then come from the tenant's records, because no rollup contains labels. */
  readonly labels?: LabelFilter | undefined
}

export interface PaidAsked {
  readonly tenant_id: TenantId
  readonly rollup: RollupName
  readonly window: Window
  /** The account whose sums are reported separately from all others. */
  readonly viewer: AccountId
  /** The accounts that get their own data points: the listed ones, or the `limit` accounts with the highest cost. */
  readonly named: ReadonlyArray<AccountId> | { readonly most: number }
  /** Restricts the sums to calls with these labels. The sums then come from the records. */
  readonly labels?: LabelFilter | undefined
}

/** Data points are in chronological order. Periods without calls are absent. */
export interface Paid {
  readonly callers: ReadonlyArray<{ readonly account_id: AccountId; readonly totals: Totals }>
  readonly viewer: ReadonlyArray<DataPoint>
  readonly others: ReadonlyArray<DataPoint>
  readonly named: ReadonlyMap<AccountId, ReadonlyArray<DataPoint>>
}

export interface PayerSums {
  readonly window: Window
  readonly totals: Totals
  /** Sources by descending cost. */
  readonly sources: ReadonlyArray<
    Totals & {
      readonly billing_account_id: BillingAccountId
      readonly tenant_id: TenantId
      readonly kind: "own" | "team"
    }
  >
}

export class Sums extends Context.Tag("tollgate/usage/Sums")<Sums, SumsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Sums, make))
}

interface Parts {
  readonly sql: SqlClient
  readonly numbers: ReturnType<typeof Numbers.make>
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const parts: Parts = { sql, numbers: Numbers.make(sql) }
  return {
    summary: summary(parts),
    rollup: rollup(parts),
    byPayer: byPayer(parts),
    paid: paid(parts)
  } satisfies SumsContract
})

const summary = (parts: Parts): SumsContract["summary"] =>
  Effect.fn("Sums.summary")(function* ({ application_id, caller, run_id, window: { end, start } }) {
    return yield* Effect.orDie(
      Effect.gen(function* () {
        if (run_id !== undefined) {
          const filter = { account_id: caller.account_id, run_id }
          return summaryOf(yield* LabelledSums.summary(parts, caller.tenant_id, { start, end }, filter))
        }
        // An end after the latest record counts as open, so that "until now" does not split an hour.
        const latest = yield* parts.numbers.latest(caller.tenant_id)
        const open = end !== null && latest !== undefined && latest < end
        const pieces = partsOf({ start, end: open ? null : end })
        if (application_id !== undefined) return summaryOf(yield* sumsOfKey(parts, caller, pieces, application_id))
        return summaryOf((yield* Effect.forEach(pieces, (part) => sumsOf(parts, caller, part))).flat())
      })
    )
  })

/** Sums part of a window from its grain's rollup, or from the records if the part has no grain. */
const sumsOf = Effect.fnUntraced(function* (
  { numbers, sql }: Parts,
  { account_id, tenant_id }: Actor,
  { end, grain, start }: Part
) {
  if (grain !== null) {
    return yield* sql<SumRow>`SELECT model, endpoint, ${sql.literal(sumSelection)} FROM (
          SELECT model, endpoint, ${sql.literal(sumColumns)} FROM tollgate_usage_by_caller
          WHERE tenant_id = ${tenant_id} AND account_id = ${account_id} AND grain = ${grain}
            AND start >= ${start} AND start < ${end}
          UNION ALL SELECT d.model, d.endpoint, ${sql.literal(recordColumns)} FROM ${lagOf(sql, tenant_id)}
          WHERE +d.account_id = ${account_id} AND r.at >= ${start} AND r.at < ${end}
        ) sums GROUP BY model, endpoint`
  }
  return yield* recordsOf({ numbers, sql }, { account_id, tenant_id }, { start, end })
})

/** Sums a key's calls from its saved totals for whole hours and days, and from the records that the totals do not cover. */
const sumsOfKey = Effect.fnUntraced(function* (
  parts: Parts,
  caller: Actor,
  pieces: ReadonlyArray<Part>,
  application_id: string
) {
  const { numbers, sql } = parts
  const wholePeriods = pieces.flatMap(({ end, grain, start }) => (grain === null ? [] : [{ end, grain, start }]))
  const partialHours = pieces.filter(({ grain }) => grain === null)
  const found: Array<SumRow> = []
  for (const piece of partialHours) found.push(...(yield* recordsOf(parts, caller, piece, application_id)))
  if (wholePeriods.length === 0) return found
  const { end, sums } = yield* KeyTotals.storedTotals(sql, application_id, wholePeriods)
  const [start, last] = [
    Math.min(...wholePeriods.map((part) => part.start)),
    Math.max(...wholePeriods.map((part) => part.end))
  ]
  const tail = yield* numbers.after(caller.tenant_id, end)
  const within = sql`AND r.at >= ${start} AND r.at < ${last}`
  return [...found, ...sums, ...(yield* recordsIn(parts, caller, tail, application_id, within))]
})

const recordsOf = Effect.fnUntraced(function* (parts: Parts, caller: Actor, window: Window, application_id?: string) {
  return yield* recordsIn(parts, caller, yield* parts.numbers.range(caller.tenant_id, window), application_id)
})

/** Sums the caller's records in a range of record numbers. */
const recordsIn = Effect.fnUntraced(function* (
  { numbers, sql }: Parts,
  { account_id, tenant_id }: Actor,
  range: Range,
  application_id?: string,
  within?: Fragment
) {
  // The unary `+` makes SQLite look up dimensions by number, whatever its statistics say.
  const only =
    application_id === undefined
      ? sql`+d.account_id = ${account_id}`
      : sql`+d.account_id = ${account_id} AND +d.application_id = ${application_id}`
  const pieces = yield* inSlices(
    range,
    (piece) => sql<SumRow>`SELECT model, endpoint, ${sql.literal(sumSelection)} FROM (
          SELECT d.model, d.endpoint, ${sql.literal(recordColumns)}
          FROM ${numbers.described(tenant_id, piece)} AND ${only} ${within ?? sql.literal("")}
        ) sums GROUP BY model, endpoint`
  )
  return pieces.flat()
})

const lagOf = (sql: SqlClient, tenant: string): Fragment => tailsOf(sql, sql`SELECT ${tenant} AS id`)

/** Drops the filter's absent fields. */
const definedFields = (filter: Pick<RollupAsked, "application_id" | "provider" | "usage_type">): Filter =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))

const rollup = ({ numbers, sql }: Parts): SumsContract["rollup"] =>
  Effect.fn("Sums.rollup")(function* (request) {
    const { application_id, labels, provider, rollup: by, tenant_id, usage_type, window } = request
    if (labels !== undefined) {
      const filter = { ...labels, ...definedFields({ application_id, provider, usage_type }) }
      const data_points = yield* LabelledSums.rollup({ numbers, sql }, { tenant_id, rollup: by, window, filter })
      return { rollup: by, start_date: window.start, end_date: window.end, data_points }
    }
    const { end, start } = wholeDays(window)
    const only = (column: string, value: string | undefined) =>
      value === undefined ? sql.literal("") : sql`AND +${sql.literal(column)} = ${value}`
    const filters = sql`${only("application_id", application_id)} ${only("usage_type", usage_type)} ${only("provider", provider)}`
    const rows = yield* Effect.orDie(
      sql<PointRow>`SELECT ${periodOf(sql, by)} AS timestamp, ${sql.literal(sumSelection)} FROM (
          SELECT start, ${sql.literal(sumColumns)} FROM tollgate_usage_by_tenant
          WHERE tenant_id = ${tenant_id} AND start >= ${start} AND start < ${end} ${filters}
          UNION ALL SELECT ${sql.literal(dayOfRecord)}, ${sql.literal(recordColumns)} FROM ${lagOf(sql, tenant_id)}
          WHERE r.at >= ${start} AND r.at < ${end} ${filters}
        ) sums GROUP BY 1 ORDER BY 1`
    )
    return { rollup: by, start_date: window.start, end_date: window.end, data_points: rows.map(pointOf) }
  })

const byPayer = ({ sql }: Parts): SumsContract["byPayer"] =>
  Effect.fn("Sums.byPayer")(function* ({ account_id, window }) {
    const { end, start } = wholeDays(window)
    const rows = yield* Effect.orDie(
      sql<PayerRow>`SELECT billing_account_id, billing_source_kind AS kind, SUM(requests) AS requests,
          SUM(prompt_tokens + completion_tokens) AS tokens, CAST(SUM(cost) AS TEXT) AS cost FROM (
          SELECT billing_account_id, billing_source_kind, ${sql.literal(sumColumns)} FROM tollgate_usage_by_payer
          WHERE account_id = ${account_id} AND start >= ${start} AND start < ${end}
          UNION ALL SELECT d.billing_account_id, d.billing_source_kind, ${sql.literal(recordColumns)}
          FROM ${tailsWith(sql, "account_id", account_id)}
          WHERE +d.account_id = ${account_id} AND r.at >= ${start} AND r.at < ${end}
        ) sums GROUP BY 1, 2 ORDER BY SUM(cost) DESC, 1, 2`
    )
    const sources = rows.map((row) => ({
      billing_account_id: row.billing_account_id,
      tenant_id: tenantOf(row.billing_account_id),
      kind: row.kind,
      total_requests: row.requests,
      total_tokens: row.tokens,
      total_cost: fromRow(row.cost)
    }))
    return { window, totals: addTotals(sources), sources }
  })

// A single statement is needed, because a record could move from the rollup lag into the rollups between two statements. The database sums the rows,
// because a large team's year has one row per member and day.
const paid = ({ numbers, sql }: Parts): SumsContract["paid"] =>
  Effect.fn("Sums.paid")(function* (request) {
    const { named, rollup, tenant_id, viewer, window } = request
    if (request.labels !== undefined) return yield* LabelledSums.paid({ numbers, sql }, request, request.labels)
    const { end, start } = wholeDays(window)
    const payer = billingAccountOf(tenant_id)
    const period = periodOf(sql, rollup)
    const [columns, sums, sumsOfSums] = [sumColumns, sumSelection, sumOfSums].map((text) => sql.literal(text))
    const rolled = sql`tollgate_usage_by_payer WHERE billing_account_id = ${payer} AND start >= ${start} AND start < ${end}`
    const namedQuery =
      "most" in named
        ? sql`SELECT account_id FROM callers ORDER BY CAST(cost AS BIGINT) DESC, ${period}, account_id LIMIT ${named.most}`
        : sql`SELECT value AS account_id FROM json_each(${JSON.stringify(named)})`
    const isNamed = sql`account_id IN (SELECT account_id FROM few)`
    // The statement below takes 0.1 s for a year with 200 members, so let other work run first.
    yield* turn
    const rows = yield* Effect.orDie(
      sql<PaidRow>`WITH tail AS MATERIALIZED (
          SELECT ${sql.literal(dayOfRecord)}, d.account_id, ${sql.literal(recordColumns)}
          FROM ${tailsWith(sql, "billing_account_id", payer)}
          WHERE +d.billing_account_id = ${payer} AND r.at >= ${start} AND r.at < ${end}
        ),
        callers AS MATERIALIZED (
          SELECT account_id, MIN(start) AS start, ${sums} FROM (
            SELECT start, account_id, ${columns} FROM ${rolled} UNION ALL SELECT start, account_id, ${columns} FROM tail
          ) paid GROUP BY account_id
        ),
        few AS MATERIALIZED (SELECT account_id FROM (${namedQuery}) named UNION SELECT ${viewer}),
        few_days AS MATERIALIZED (
          SELECT account_id, start, ${sumsOfSums} FROM ${rolled} AND ${isNamed} GROUP BY start, account_id
          UNION ALL SELECT account_id, start, ${columns} FROM tail WHERE ${isNamed}
        ),
        other_days AS MATERIALIZED (
          SELECT start, ${sumsOfSums} FROM ${rolled} AND account_id <> ${viewer} GROUP BY start
          UNION ALL SELECT start, ${columns} FROM tail WHERE account_id <> ${viewer}
        )
        SELECT 0 AS part, account_id, ${period} AS timestamp, ${columns} FROM callers
        UNION ALL SELECT 1, account_id, ${period}, ${sums} FROM few_days GROUP BY 2, 3
        UNION ALL SELECT 2, '', ${period}, ${sums} FROM other_days GROUP BY 3
        ORDER BY 1, 3, 2`
    )
    const [callers, several, others] = [0, 1, 2].map((part) => rows.filter((row) => row.part === part))
    const pointsOf = (account: AccountId) => several!.filter(({ account_id }) => account_id === account).map(pointOf)
    const chosen = "most" in named ? mostExpensive(callers!, named.most) : named
    return {
      callers: callers!.map((row) => {
        const { total_cost, total_requests, total_tokens } = pointOf(row)
        return { account_id: row.account_id, totals: { total_requests, total_tokens, total_cost } }
      }),
      viewer: pointsOf(viewer),
      others: others!.map(pointOf),
      named: new Map(chosen.map((account) => [account, pointsOf(account)]))
    }
  })

// ---- summary ------------------------------------------------------------------------------------------------------------

export interface SumRow {
  readonly model: string
  readonly endpoint: string
  readonly requests: number
  readonly successes: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cost: string
  readonly latency_ms: number
}

interface Total {
  readonly name: string
  requests: number
  successes: number
  prompt_tokens: number
  completion_tokens: number
  cost: Nano
  latency_ms: number
}

const summaryOf = (rows: ReadonlyArray<SumRow>): Summary => {
  const [all = emptyTotal("")] = totals(rows, () => "")
  return {
    total_requests: all.requests,
    successful_requests: all.successes,
    failed_requests: all.requests - all.successes,
    total_tokens: all.prompt_tokens + all.completion_tokens,
    prompt_tokens: all.prompt_tokens,
    completion_tokens: all.completion_tokens,
    total_cost: all.cost,
    average_latency_ms: all.requests === 0 ? 0 : all.latency_ms / all.requests,
    model_breakdown: totals(rows, (row) => row.model).map((total) => ({
      model: total.name,
      request_count: total.requests,
      total_tokens: total.prompt_tokens + total.completion_tokens,
      prompt_tokens: total.prompt_tokens,
      completion_tokens: total.completion_tokens,
      total_cost: total.cost
    })),
    endpoint_breakdown: totals(rows, (row) => row.endpoint).map((total) => ({
      endpoint: total.name,
      request_count: total.requests,
      total_tokens: total.prompt_tokens + total.completion_tokens,
      total_cost: total.cost
    }))
  }
}

const emptyTotal = (name: string): Total => ({
  name,
  requests: 0,
  successes: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cost: 0n,
  latency_ms: 0
})

/** Sums the rows by name and sorts them by descending cost, then by name. */
const totals = (rows: ReadonlyArray<SumRow>, nameOf: (row: SumRow) => string): ReadonlyArray<Total> => {
  const byName = new Map<string, Total>()
  for (const row of rows) {
    const name = nameOf(row)
    const total = byName.get(name) ?? emptyTotal(name)
    byName.set(name, total)
    total.requests += row.requests
    total.successes += row.successes
    total.prompt_tokens += row.prompt_tokens
    total.completion_tokens += row.completion_tokens
    total.cost += fromRow(row.cost)
    total.latency_ms += row.latency_ms
  }
  return [...byName.values()].sort((a, b) =>
    a.cost === b.cost ? (a.name < b.name ? -1 : 1) : a.cost > b.cost ? -1 : 1
  )
}

// ---- rollup -------------------------------------------------------------------------------------------------------------

interface PayerRow {
  readonly billing_account_id: BillingAccountId
  readonly kind: "own" | "team"
  readonly requests: number
  readonly tokens: number
  readonly cost: string
}

export const addTotals = (parts: ReadonlyArray<Totals>): Totals => ({
  total_requests: parts.reduce((sum, part) => sum + part.total_requests, 0),
  total_tokens: parts.reduce((sum, part) => sum + part.total_tokens, 0),
  total_cost: parts.reduce((sum, part) => sum + part.total_cost, 0n)
})

/**
 * `part` is 0 for a caller's sum, with the `timestamp` of its first period; 1 for the viewer or a named account; and 2 for all accounts except the
 * viewer.
 */
interface PaidRow extends PointRow {
  readonly part: number
  readonly account_id: AccountId
}

/** Returns the accounts with the highest cost. On a tie, the account that comes first in `callers` wins. */
const mostExpensive = (callers: ReadonlyArray<PaidRow>, limit: number): ReadonlyArray<AccountId> =>
  callers
    .map((row) => ({ account_id: row.account_id, cost: fromRow(row.cost) }))
    .sort((a, b) => (a.cost === b.cost ? 0 : a.cost > b.cost ? -1 : 1))
    .slice(0, limit)
    .map(({ account_id }) => account_id)
