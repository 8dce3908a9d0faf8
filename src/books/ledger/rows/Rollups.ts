/** Maintains the sums for the usage views. A tenant's rollup lag is folded into them once it is long enough (`RollupLag`). */
import { day, hour } from "../../../kernel/Moment.ts"
import { all, queryOf, insert } from "./SqlEffect.ts"
import type { SqlSteps } from "./SqlEffect.ts"
import type { DimensionsRow } from "./Dimensions.ts"
import { tailRecords } from "./RollupLag.ts"

/** Folds the tenants' rollup lags into all rollups and moves each watermark to the given record number. */
export function* fold(tails: ReadonlyMap<string, number>): SqlSteps<void> {
  if (tails.size === 0) return
  const found = yield* all([...tails.keys()].map((tenant) => queryOf(selectGroups, [tenant])))
  const groups = (found.flat() as ReadonlyArray<GroupRow>).map(groupOf)
  for (const { columns, keysOf, table } of rollups) {
    yield* insert(table, [...columns, ...sumColumns], summed(groups, keysOf), sumConflict(table, columns))
  }
  yield* insert(
    "tollgate_usage_watermarks",
    ["tenant_id", "number"],
    [...tails],
    "(tenant_id) DO UPDATE SET number = excluded.number"
  )
}

export type OwnerColumn = "tenant_id" | "account_id" | "billing_account_id"

export interface Rollup {
  readonly table: "tollgate_usage_by_tenant" | "tollgate_usage_by_caller" | "tollgate_usage_by_payer"
  /** The columns of the primary key: the owner, `grain` (if the table has several), `start` and further columns. */
  readonly columns: ReadonlyArray<string>
  readonly owner: ReadonlyArray<OwnerColumn>
  readonly keysOf: (dimensions: DimensionsRow, at: number) => ReadonlyArray<ReadonlyArray<string | number>>
}

/** The tables, one for each view. `grain` is a period's length in milliseconds, and `start` its beginning. */
export const rollups: ReadonlyArray<Rollup> = [
  {
    table: "tollgate_usage_by_tenant",
    owner: ["tenant_id"],
    columns: ["tenant_id", "start", "application_id", "usage_type", "provider"],
    keysOf: (d, at) => [[d.tenant_id, startOf(at, day), d.application_id ?? "", d.usage_type, d.provider]]
  },
  {
    table: "tollgate_usage_by_caller",
    owner: ["tenant_id", "account_id"],
    columns: ["tenant_id", "account_id", "grain", "start", "model", "endpoint"],
    keysOf: (d, at) =>
      [day, hour].map((grain) => [d.tenant_id, d.account_id, grain, startOf(at, grain), d.model, d.endpoint])
  },
  {
    table: "tollgate_usage_by_payer",
    owner: ["billing_account_id"],
    columns: ["billing_account_id", "start", "account_id", "billing_source_kind"],
    keysOf: (d, at) => [[d.billing_account_id, startOf(at, day), d.account_id, d.billing_source_kind]]
  }
]

const startOf = (at: number, grain: number): number => at - (at % grain)

export const sumColumns = [
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

/** The sums of a tail's records with equal dimensions and hour. */
interface Group {
  readonly dimensions: DimensionsRow
  readonly at: number
  readonly sums: Sums
}

// Groups the records before joining the dimensions, because sorting rows that include the dimensions takes as long as the rest of the query.
const selectGroups = `SELECT d.*, g.* FROM (
    SELECT r.dimensions, r.at - r.at % ${hour} AS at, COUNT(*) AS requests, SUM(r.success) AS successes,
      SUM(r.prompt_tokens) AS prompt_tokens, SUM(r.completion_tokens) AS completion_tokens, SUM(r.units) AS units,
      CAST(SUM(r.cost) AS TEXT) AS cost, SUM(r.latency_ms) AS latency_ms
    FROM ${tailRecords("SELECT ? AS id")} GROUP BY 1, 2
  ) g CROSS JOIN tollgate_usage_dimensions d ON d.number = g.dimensions`

interface GroupRow extends DimensionsRow, Omit<Sums, "cost"> {
  readonly at: number
  readonly cost: string
}

const groupOf = (row: GroupRow): Group => ({
  dimensions: row,
  at: row.at,
  sums: {
    requests: row.requests,
    successes: row.successes,
    prompt_tokens: row.prompt_tokens,
    completion_tokens: row.completion_tokens,
    units: row.units,
    cost: BigInt(row.cost),
    latency_ms: row.latency_ms
  }
})

const summed = (
  groups: ReadonlyArray<Group>,
  keysOf: (typeof rollups)[number]["keysOf"]
): ReadonlyArray<ReadonlyArray<unknown>> => {
  const rows = new Map<string, { readonly key: ReadonlyArray<string | number>; readonly sums: Sums }>()
  for (const { at, dimensions, sums } of groups) {
    for (const key of keysOf(dimensions, at)) {
      const name = key.join("\n")
      const row = rows.get(name)
      if (row === undefined) rows.set(name, { key, sums: { ...sums } })
      else add(row.sums, sums)
    }
  }
  return [...rows.values()].map(({ key, sums }) => [...key, ...sumColumns.map((column) => sums[column])])
}

const add = (to: Sums, sums: Readonly<Sums>): void => {
  to.requests += sums.requests
  to.successes += sums.successes
  to.prompt_tokens += sums.prompt_tokens
  to.completion_tokens += sums.completion_tokens
  to.units += sums.units
  to.cost += sums.cost
  to.latency_ms += sums.latency_ms
}
