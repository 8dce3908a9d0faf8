/** The sums that the usage views read, kept up in the settling transaction. */
import { day, hour } from "../kernel/Moment.ts"
import { insert } from "./Ask.ts"
import type { Asking } from "./Ask.ts"
import type { Dimensions, UsageRecord } from "./Transaction.ts"

/** Adds the records of one batch to every table of sums. */
export function* rollUp(records: ReadonlyArray<UsageRecord>): Asking<void> {
  const groups = [...groupsOf(records)]
  for (const { columns, keysOf, table } of rollups) {
    yield* insert(table, [...columns, ...sumColumns], summed(groups, keysOf), sumConflict(table, columns))
  }
}

/**
 * One table for each question that is asked. `grain` is the width of a period in milliseconds, `start` its first one.
 */
const rollups: ReadonlyArray<{
  readonly table: string
  readonly columns: ReadonlyArray<string>
  readonly keysOf: (dimensions: Dimensions, at: number) => ReadonlyArray<ReadonlyArray<string | number>>
}> = [
  {
    table: "tollgate_usage_by_tenant",
    columns: ["tenant_id", "start", "application_id", "usage_type", "provider"],
    keysOf: (d, at) => [[d.tenant_id, startOf(at, day), d.application_id ?? "", d.usage_type, d.provider]]
  },
  {
    table: "tollgate_usage_by_caller",
    columns: ["tenant_id", "account_id", "grain", "start", "model", "endpoint"],
    keysOf: (d, at) =>
      [day, hour].map((grain) => [d.tenant_id, d.account_id, grain, startOf(at, grain), d.model, d.endpoint])
  },
  {
    table: "tollgate_usage_by_payer",
    columns: ["billing_account_id", "start", "account_id", "billing_source_kind"],
    keysOf: (d, at) => [[d.billing_account_id, startOf(at, day), d.account_id, d.billing_source_kind]]
  }
]

const startOf = (at: number, grain: number): number => at - (at % grain)

const sumColumns = [
  "requests",
  "successes",
  "prompt_tokens",
  "completion_tokens",
  "units",
  "cost",
  "latency_ms"
] as const

const sumConflict = (table: string, key: ReadonlyArray<string>): string =>
  `(${key.join(", ")}) DO UPDATE SET ${sumColumns
    .map((column) => `${column} = ${table}.${column} + excluded.${column}`)
    .join(", ")}`

interface Sums {
  requests: number
  successes: number
  prompt_tokens: number
  completion_tokens: number
  units: number
  cost: bigint
  latency_ms: number
}

/** The records of one batch that count into the same sums. They were all booked at one instant. */
interface Group {
  readonly dimensions: Dimensions
  readonly at: number
  readonly sums: Sums
}

const groupsOf = (records: ReadonlyArray<UsageRecord>): Iterable<Group> => {
  const groups = new Map<Dimensions, Group>()
  let last: Group | undefined
  for (const record of records) {
    const { at, dimensions } = record
    // Where one caller is busy, most records follow one of their own kind.
    if (last?.dimensions !== dimensions) {
      last = groups.get(dimensions)
      if (last === undefined) groups.set(dimensions, (last = { dimensions, at, sums: noSums() }))
    }
    add(last.sums, 1, record.success ? 1 : 0, record)
  }
  return groups.values()
}

const noSums = (): Sums => ({
  requests: 0,
  successes: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 0,
  cost: 0n,
  latency_ms: 0
})

const add = (
  sums: Sums,
  requests: number,
  successes: number,
  of: Omit<Readonly<Sums>, "requests" | "successes">
): void => {
  sums.requests += requests
  sums.successes += successes
  sums.prompt_tokens += of.prompt_tokens
  sums.completion_tokens += of.completion_tokens
  sums.units += of.units
  sums.cost += of.cost
  sums.latency_ms += of.latency_ms
}

/** One row for each key, so that a busy key is written once a batch. */
const summed = (
  groups: ReadonlyArray<Group>,
  keysOf: (typeof rollups)[number]["keysOf"]
): ReadonlyArray<ReadonlyArray<unknown>> => {
  const rows = new Map<string, { readonly key: ReadonlyArray<string | number>; readonly sums: Sums }>()
  for (const { at, dimensions, sums } of groups) {
    for (const key of keysOf(dimensions, at)) {
      const name = key.join("\n")
      let row = rows.get(name)
      if (row === undefined) rows.set(name, (row = { key, sums: noSums() }))
      add(row.sums, sums.requests, sums.successes, sums)
    }
  }
  return [...rows.values()].map(({ key, sums }) => [...key, ...sumColumns.map((column) => sums[column])])
}
