/** The building blocks of rollups: the columns to sum, the periods, and the data points shown to clients. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { day } from "../../kernel/Moment.ts"
import { fromRow } from "../../kernel/Money.ts"
import type { DataPoint, RollupName } from "./Usage.ts"

export const sumColumns = "requests, successes, prompt_tokens, completion_tokens, units, cost, latency_ms"

export const sumSelection = `SUM(requests) AS requests, SUM(successes) AS successes, SUM(prompt_tokens) AS prompt_tokens,
  SUM(completion_tokens) AS completion_tokens, SUM(units) AS units, CAST(SUM(cost) AS TEXT) AS cost,
  SUM(latency_ms) AS latency_ms`

/** The SQL that adds up rows that are already sums. */
export const sumOfSums = sumColumns.replaceAll(/\w+/g, "SUM($&) AS $&")

/** The values that a record adds to the sums, and the record's day. */
export const recordColumns = `1 AS requests, r.success AS successes, r.prompt_tokens, r.completion_tokens, r.units, r.cost, r.latency_ms`
export const dayOfRecord = `r.at - r.at % ${day} AS start`

/** Builds the SQL expression for the start of a day's period. */
export const periodOf = (sql: SqlClient, rollup: RollupName): Fragment => {
  if (rollup === "daily") return sql.literal("start")
  const unit = rollup === "monthly" ? "month" : "year"
  return sql.literal(
    sql.onDialectOrElse({
      pg: () =>
        `CAST(extract(epoch FROM date_trunc('${unit}', to_timestamp(start / 1000.0) AT TIME ZONE 'UTC')) * 1000 AS bigint)`,
      orElse: () => `unixepoch(start / 1000, 'unixepoch', 'start of ${unit}') * 1000`
    })
  )
}

export interface PointRow {
  readonly timestamp: number
  readonly requests: number
  readonly successes: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly units: number
  readonly cost: string
}

export const pointOf = (row: PointRow): DataPoint => ({
  timestamp: row.timestamp,
  total_requests: row.requests,
  total_tokens: row.prompt_tokens + row.completion_tokens,
  prompt_tokens: row.prompt_tokens,
  completion_tokens: row.completion_tokens,
  units: row.units,
  total_cost: fromRow(row.cost),
  success_count: row.successes,
  failure_count: row.requests - row.successes
})

/** Adds up the data points of each period, in chronological order. */
export const together = (points: ReadonlyArray<DataPoint>): ReadonlyArray<DataPoint> => {
  const periods = new Map<number, DataPoint>()
  for (const point of points) {
    const there = periods.get(point.timestamp)
    periods.set(point.timestamp, there === undefined ? point : sum(there, point))
  }
  return [...periods.values()].sort((a, b) => a.timestamp - b.timestamp)
}

const sum = (a: DataPoint, b: DataPoint): DataPoint => ({
  timestamp: a.timestamp,
  total_requests: a.total_requests + b.total_requests,
  total_tokens: a.total_tokens + b.total_tokens,
  prompt_tokens: a.prompt_tokens + b.prompt_tokens,
  completion_tokens: a.completion_tokens + b.completion_tokens,
  units: a.units + b.units,
  total_cost: a.total_cost + b.total_cost,
  success_count: a.success_count + b.success_count,
  failure_count: a.failure_count + b.failure_count
})
