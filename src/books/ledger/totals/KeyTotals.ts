/**
 * Totals for each API key, by UTC day and hour, model and endpoint, for the key's usage view. They include the records of all tenants up to a row
 * called the end. A reader adds the key's later records (`money/usage/Sums`). `KeyTotalsIndexer` adds records shortly after the charge, in the
 * transaction that moves the end, for the same reasons as in `ProviderTotals`.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { Effect } from "effect"
import { day, hour } from "../../../kernel/Moment.ts"
import { withDimensions } from "../rows/Dimensions.ts"
import type { CheckRow } from "../rules/Check.ts"
import type { Statement } from "../rules/Transaction.ts"
import { lastRow } from "./ProviderTotals.ts"

const keys = "application_id, grain, start, model, endpoint"

/** The SQL expression of each sum. */
const measures = {
  requests: "COUNT(*)",
  successes: "SUM(r.success)",
  prompt_tokens: "SUM(r.prompt_tokens)",
  completion_tokens: "SUM(r.completion_tokens)",
  cost: "SUM(r.cost)",
  latency_ms: "SUM(r.latency_ms)"
} as const

const names = Object.keys(measures) as ReadonlyArray<keyof typeof measures>
const columns = names.join(", ")

/** The query for the last row that the totals include. */
export const selectEnd = "SELECT COALESCE((SELECT record FROM tollgate_usage_by_key_end), 0)"

export const endOf = (sql: SqlClient) =>
  Effect.map(sql<{ readonly record: number }>`SELECT (${sql.literal(selectEnd)}) AS record`, ([row]) => row!.record)

/** Builds the query for the totals of the records `r` after the row `from` and up to the row `to`. */
const ofRecords = (from: string, to: string): string => `SELECT d.application_id AS application_id, g.grain AS grain,
    r.at - r.at % g.grain AS start, d.model AS model, d.endpoint AS endpoint,
    ${names.map((name) => `${measures[name]} AS ${name}`).join(", ")}
  FROM tollgate_usage_records r ${withDimensions} CROSS JOIN (SELECT ${day} AS grain UNION ALL SELECT ${hour}) g ON 1 = 1
  WHERE r.seq > ${from} AND r.seq <= ${to} AND d.application_id <> '' GROUP BY 1, 2, 3, 4, 5`

/** Builds the statements that add the records after `end` and up to the row `to`. They conflict if another node has moved the end. */
export const adding = (end: number, to: number): ReadonlyArray<Statement> => [
  {
    text: `INSERT INTO tollgate_usage_by_key_end (id, record) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET record = excluded.record WHERE tollgate_usage_by_key_end.record = ? RETURNING record`,
    params: [to, end],
    rows: 1
  },
  { text: add, params: [end, to] }
]

const add = `INSERT INTO tollgate_usage_by_key (${keys}, ${columns}) ${ofRecords("?", "?")}
  ON CONFLICT (${keys}) DO UPDATE SET
    ${names.map((name) => `${name} = tollgate_usage_by_key.${name} + excluded.${name}`).join(", ")}`

/** A range of complete periods of a grain. */
export interface Periods {
  readonly grain: number
  readonly start: number
  readonly end: number
}

export interface KeySum {
  readonly model: string
  readonly endpoint: string
  readonly requests: number
  readonly successes: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cost: string
  readonly latency_ms: number
}

/** Reads a key's stored totals over these periods, by model and endpoint, together with their end. */
export const storedTotals = (sql: SqlClient, application_id: string, periods: ReadonlyArray<Periods>) => {
  const within: ReadonlyArray<Fragment> = periods.map(
    ({ end, grain, start }) => sql`SELECT model, endpoint, ${sql.literal(columns)} FROM tollgate_usage_by_key
      WHERE application_id = ${application_id} AND grain = ${grain} AND start >= ${start} AND start < ${end}`
  )
  const [first, ...rest] = within
  if (first === undefined) return Effect.map(endOf(sql), (end) => ({ end, sums: [] as ReadonlyArray<KeySum> }))
  const all = rest.reduce((before, next) => sql`${before} UNION ALL ${next}`, first)
  const sums = names.map((name) => (name === "cost" ? "CAST(SUM(cost) AS TEXT) AS cost" : `SUM(${name}) AS ${name}`))
  const rows = sql<KeySum & { readonly record: number; readonly model: string | null }>`
    SELECT e.record, s.* FROM (SELECT (${sql.literal(selectEnd)}) AS record) e LEFT JOIN (
      SELECT model, endpoint, ${sql.literal(sums.join(", "))} FROM (${all}) parts GROUP BY model, endpoint
    ) s ON 1 = 1`
  return Effect.map(rows, (found) => ({
    end: found[0]!.record,
    // If there are no totals, the result is one row that contains only the end.
    sums: found.filter(({ model }) => model !== null)
  }))
}

// ---- checking -----------------------------------------------------------------------------------------------------------

/** Finds totals that differ from the records up to the end. Those records never change, so the check works while more are added. */
export const faultsOf = Effect.fnUntraced(function* (sql: SqlClient) {
  const end = yield* endOf(sql)
  const last = yield* lastRow(sql)
  const same = ["application_id", "grain", "start", "model", "endpoint"]
    .map((key) => `k.${key} = m.${key}`)
    .join(" AND ")
  const differ = names.map((name) => `k.${name} <> m.${name}`).join(" OR ")
  const id = (of: string): string =>
    `${of}.application_id || '/' || ${of}.start || '/' || ${of}.grain || '/' || ${of}.model`
  const made = `(${ofRecords("0", String(end))}) m`
  const rows = yield* sql.unsafe<CheckRow>(`
    SELECT ${id("m")} AS id, m.requests || ' calls, ' || m.cost || ' nano-USD' AS expected,
        COALESCE(k.requests || ' calls, ' || k.cost || ' nano-USD', 'nothing') AS found
      FROM ${made} LEFT JOIN tollgate_usage_by_key k ON ${same} WHERE k.requests IS NULL OR ${differ}
    UNION ALL SELECT ${id("k")}, 'nothing', k.requests || ' calls, ' || k.cost || ' nano-USD'
      FROM tollgate_usage_by_key k LEFT JOIN ${made} ON ${same} WHERE m.requests IS NULL`)
  const moved = { id: "their end", expected: `row ${last} or before`, found: `row ${end}` }
  return end > last ? [moved, ...rows] : rows
})
