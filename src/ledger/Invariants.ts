/**
 * What must hold of the books at every moment, as questions to the database. Each check is one query that answers what is
 * off, with the figure that is kept and the one that it should be. What follows from row to row is looked at by `Audit`. Other rooms have
 * checks of their own; `Checks` of the root has all of them.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { day, hour } from "../kernel/Moment.ts"
import { toDecimal } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import { bucketShift } from "./Buckets.ts"
import { outsideSources } from "./Relations.ts"
import * as SortedRuns from "./SortedRuns.ts"

/** Something that is off. */
export interface Finding {
  /** The name of the check that found it. */
  readonly check: string
  /** What it is about: an account, an entry, a record, a key of a rollup. */
  readonly id: string
  readonly expected: string
  readonly found: string
  /** The same as a sentence. */
  readonly message: string
}

/** What a check's query answers. */
export interface CheckRow {
  readonly id: string
  readonly expected: string
  readonly found: string
}

/** A rule that must hold, and what finds what breaks it: a query, or a program where no query can say it. */
export type Check = {
  readonly name: string
  /** Whether it costs little however long the history is: then an audit behind a mark looks at it too. */
  readonly isShort?: true
  readonly sentence: (row: CheckRow) => string
} & (
  | {
      /** Answers rows of `id`, `expected` and `found`, all of them text. */
      readonly query: string
    }
  | { readonly find: (sql: SqlClient) => Effect.Effect<ReadonlyArray<CheckRow>, SqlError> }
)

/** The most findings that one check reports: a broken rule may be broken a million times. */
export const findingsMax = 100

/**
 * Looks at the checks one by one. Each is a query, so it sees the database as it is at one moment, and is right on a live one. It reads
 * tables whole and holds its connection meanwhile, so a server's own is not the place for it.
 */
export const lookAt = (checks: ReadonlyArray<Check>): Effect.Effect<ReadonlyArray<Finding>, never, SqlClient> =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.forEach(checks, (check) =>
      Effect.map(
        "find" in check ? check.find(sql) : sql.unsafe<CheckRow>(`SELECT * FROM (${check.query}) LIMIT ${findingsMax}`),
        (rows) => rows.map((row): Finding => ({ check: check.name, ...row, message: check.sentence(row) }))
      )
    ).pipe(
      Effect.map((found) => found.flat()),
      Effect.orDie
    )
  )

/** An amount of nano-USD in a sentence. */
export const usd = (nano: string): string => (/^-?\d+$/.test(nano) ? `${toDecimal(BigInt(nano))} USD` : nano)

/** A column of `id`, `expected` and `found`. */
export const text = (expression: string) => `CAST(${expression} AS TEXT)`

/** The rows of a table that points to dimensions, each with them; `caller` is null where it points nowhere. */
const described = (table: string) => `(SELECT t.*, d.tenant_id AS caller, ${[
  "account_id",
  "application_id",
  "usage_type",
  "endpoint",
  "model",
  "provider",
  "billing_account_id",
  "billing_source_tenant_id",
  "billing_source_kind"
]
  .map((column) => `COALESCE(d.${column}, 'nobody knows') AS ${column}`)
  .join(", ")}
  FROM ${table} t LEFT JOIN tollgate_usage_dimensions d ON d.number = t.dimensions)`

const reservations = described("tollgate_ledger_reservations")

/** The records that the rollups hold: those up to their tenant's watermark. */
const folded = described(`(SELECT u.* FROM tollgate_usage_records u
  CROSS JOIN tollgate_usage_watermarks w ON w.tenant_id = u.tenant_id AND u.number <= w.number)`)

/**
 * The books as double entry. Each entry and each amount in escrow has its other side in one of four accounts: the customers' balances,
 * the `escrow` of transfers, `revenue` (charges), and the `world` that credit comes from and goes back to. Together they are 0.
 */
const houseAccounts = `(
  SELECT world, revenue, customers, escrow FROM (
    SELECT COALESCE(SUM(CASE type WHEN 'credit' THEN -amount ELSE amount END) FILTER (WHERE source IN ${outsideSources}), 0) AS world,
      COALESCE(SUM(amount) FILTER (WHERE type = 'debit' AND source IS NULL), 0) AS revenue
    FROM tollgate_ledger_entries
  ), (
    SELECT COALESCE(SUM(giftable + granted), 0) AS customers, COALESCE(SUM(held), 0) AS escrow FROM tollgate_ledger_accounts
  ))`

/** In nano-USD. */
export interface TrialBalance {
  /** What is outside: what was purchased and granted less what was taken back, below zero. */
  readonly world: Nano
  readonly revenue: Nano
  readonly customers: Nano
  readonly escrow: Nano
}

/** The four sums that are 0 together. It reads the entries whole, like `verify`. */
export const trialBalance: Effect.Effect<TrialBalance, never, SqlClient> = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    Effect.orDie(
      sql<{ readonly [account in keyof TrialBalance]: string }>`SELECT CAST(world AS TEXT) AS world,
        CAST(revenue AS TEXT) AS revenue, CAST(customers AS TEXT) AS customers, CAST(escrow AS TEXT) AS escrow
        FROM ${sql.literal(houseAccounts)}`
    ),
    ([row]) => ({
      world: BigInt(row!.world),
      revenue: BigInt(row!.revenue),
      customers: BigInt(row!.customers),
      escrow: BigInt(row!.escrow)
    })
  )
)

// ---- accounts -------------------------------------------------------------------------------------------------------------

const accounts: ReadonlyArray<Check> = [
  {
    name: "nothing is below zero",
    isShort: true,
    query: `SELECT id, '0 or more' AS expected,
        printf('giftable %d, granted %d, held %d, reserved %d', giftable, granted, held, reserved) AS found
      FROM tollgate_ledger_accounts WHERE MIN(giftable, granted, held, reserved) < 0`,
    sentence: ({ found, id }) => `${id} is below zero: ${found} nano-USD`
  },
  {
    name: "reserved is the sum of open reservations",
    isShort: true,
    query: `SELECT id, ${text("COALESCE(made_figure, 0)")} AS expected, ${text("COALESCE(kept_figure, 'no account')")} AS found
      FROM (${beside(
        "SELECT id, reserved AS figure FROM tollgate_ledger_accounts",
        `SELECT billing_account_id AS id, SUM(amount) AS figure FROM ${reservations} GROUP BY billing_account_id`,
        ["id"],
        ["figure"]
      )}) WHERE kept_figure IS NOT COALESCE(made_figure, 0)`,
    sentence: ({ expected, found, id }) => `${id} has ${usd(found)} set aside, but its open calls hold ${usd(expected)}`
  },
  {
    name: "reserved is within the balance",
    isShort: true,
    query: `SELECT id, ${text("giftable + granted")} AS expected, ${text("reserved")} AS found
      FROM tollgate_ledger_accounts WHERE reserved > giftable + granted`,
    sentence: ({ expected, found, id }) => `${id} has ${usd(found)} set aside of a balance of ${usd(expected)}`
  }
]

// ---- entries --------------------------------------------------------------------------------------------------------------

const entries: ReadonlyArray<Check> = [
  {
    name: "tollgate_ledger_buckets says where entries are",
    query: bucketsQuery("tollgate_ledger_buckets", "billing_account_id", "tollgate_ledger_entries", ["number"]),
    sentence: ({ expected, found, id }) =>
      `tollgate_ledger_buckets says ${found} for ${id}, but the entries there are ${expected}`
  }
]

// ---- usage ----------------------------------------------------------------------------------------------------------------

const usage: ReadonlyArray<Check> = [
  {
    name: "a call is recorded once",
    query: `SELECT id, '1' AS expected, ${text("COUNT(*)")} AS found FROM tollgate_usage_records GROUP BY id HAVING COUNT(*) > 1`,
    sentence: ({ found, id }) => `usage record ${id} is there ${found} times`
  },
  {
    name: "a call is either open or recorded",
    isShort: true,
    query: `SELECT r.id AS id, 'no reservation' AS expected, 'a reservation and the record ' || u.id AS found
      FROM tollgate_ledger_reservations r JOIN tollgate_usage_records u ON u.id = 'use_' || substr(r.id, instr(r.id, '_') + 1)`,
    sentence: ({ found, id }) => `call ${id} is settled, but still open: it has ${found}`
  },
  {
    name: "a watermark is the number of a record",
    query: `SELECT w.tenant_id AS id, '0 to ' || COALESCE(r.records, 0) AS expected, ${text("w.number")} AS found
      FROM tollgate_usage_watermarks w LEFT JOIN (
        SELECT tenant_id, COUNT(*) AS records FROM tollgate_usage_records GROUP BY tenant_id
      ) r ON r.tenant_id = w.tenant_id
      WHERE w.number < 0 OR w.number > COALESCE(r.records, 0)`,
    sentence: ({ expected, found, id }) =>
      `tollgate_usage_watermarks says that the sums of ${id} go up to record ${found}, but its records are ${expected}`
  },
  {
    name: "tollgate_usage_buckets says where records are",
    query: bucketsQuery("tollgate_usage_buckets", "tenant_id", "tollgate_usage_records", ["number", "at"]),
    sentence: ({ expected, found, id }) =>
      `tollgate_usage_buckets says ${found} for ${id}, but the records there are ${expected}`
  },
  rollup("tollgate_usage_by_tenant", `${folded} r`, {
    tenant_id: "r.tenant_id",
    start: `r.at - r.at % ${day}`,
    application_id: "r.application_id",
    usage_type: "r.usage_type",
    provider: "r.provider"
  }),
  rollup("tollgate_usage_by_caller", `${folded} r CROSS JOIN (SELECT ${day} AS grain UNION ALL SELECT ${hour}) g`, {
    tenant_id: "r.tenant_id",
    account_id: "r.account_id",
    grain: "g.grain",
    start: "r.at - r.at % g.grain",
    model: "r.model",
    endpoint: "r.endpoint"
  }),
  rollup("tollgate_usage_by_payer", `${folded} r`, {
    billing_account_id: "r.billing_account_id",
    start: `r.at - r.at % ${day}`,
    account_id: "r.account_id",
    billing_source_kind: "r.billing_source_kind"
  })
]

const sortedRuns: Check = {
  name: "sorted runs hold the records",
  find: Effect.fnUntraced(function* (sql) {
    const faults: Array<CheckRow> = []
    for (const run of yield* SortedRuns.allRuns(sql)) {
      faults.push(...(yield* SortedRuns.faultsOf(sql, run.tenant, run)))
      if (faults.length >= findingsMax) break
    }
    return faults.slice(0, findingsMax)
  }),
  sentence: ({ expected, found, id }) => `the sorted run ${id} should be ${expected}, but is ${found}`
}

/** The checks of the ledger, and of usage, which it writes. */
export const checks: ReadonlyArray<Check> = [...accounts, ...entries, ...usage, sortedRuns]

// ---- what is kept twice ---------------------------------------------------------------------------------------------------

/**
 * What is kept beside what it is made of, by key: `kept_` and `made_` of each figure, null where one side lacks the key. They
 * are sorted together, since in a full join SQLite compares each row with each.
 */
function beside(kept: string, made: string, keys: ReadonlyArray<string>, figures: ReadonlyArray<string>): string {
  const columns = (pick: (side: "kept" | "made", figure: string) => string) =>
    [...keys, ...figures.flatMap((figure) => [pick("kept", figure), pick("made", figure)])].join(", ")
  const only = (shown: "kept" | "made") =>
    columns((side, figure) => `${side === shown ? figure : "NULL"} AS ${side}_${figure}`)
  return `SELECT ${columns((side, figure) => `MAX(${side}_${figure}) AS ${side}_${figure}`)}
    FROM (SELECT ${only("kept")} FROM (${kept}) UNION ALL SELECT ${only("made")} FROM (${made}))
    GROUP BY ${keys.join(", ")}`
}

function differ(figure: string): string {
  return `kept_${figure} IS NOT made_${figure}`
}

/** Compares a table of buckets with the rows that they begin with. */
function bucketsQuery(table: string, owner: string, rows: string, columns: ReadonlyArray<string>): string {
  const figures = columns.map((column) => `first_${column}`)
  const made = `SELECT ${owner}, seq >> ${bucketShift} AS bucket,
      ${columns.map((column) => `MIN(${column}) AS first_${column}`).join(", ")}
    FROM ${rows} GROUP BY 1, 2`
  const shown = (side: string) =>
    `CASE WHEN ${side}_first_number IS NULL THEN 'nothing' ELSE printf(
      '${columns.map((column) => `from ${column} %d`).join(", ")}', ${figures.map((figure) => `${side}_${figure}`).join(", ")}) END`
  return `SELECT ${owner} || ' in bucket ' || bucket AS id, ${shown("made")} AS expected, ${shown("kept")} AS found
    FROM (${beside(`SELECT * FROM ${table}`, made, [owner, "bucket"], figures)})
    WHERE ${figures.map(differ).join(" OR ")}`
}

/** Compares a rollup with the records that it holds. `keys`: what each column of its key is of a record. */
function rollup(table: string, from: string, keys: { readonly [column: string]: string }): Check {
  const columns = Object.keys(keys)
  const sums = {
    requests: "COUNT(*)",
    successes: "SUM(r.success)",
    prompt_tokens: "SUM(r.prompt_tokens)",
    completion_tokens: "SUM(r.completion_tokens)",
    units: "SUM(r.units)",
    cost: "SUM(r.cost)",
    latency_ms: "SUM(r.latency_ms)"
  }
  const figures = Object.keys(sums)
  const made = `SELECT ${[...Object.entries(keys), ...Object.entries(sums)].map(([name, sum]) => `${sum} AS ${name}`).join(", ")}
    FROM ${from} GROUP BY ${columns.map((_, i) => i + 1).join(", ")}`
  const shown = (side: string) =>
    `CASE WHEN ${side}_requests IS NULL THEN 'nothing' ELSE printf(
      '%d calls, %d good, %d and %d tokens, %.12g units, %d nano-USD, %d ms', ${figures
        .map((figure) => `${side}_${figure}`)
        .join(", ")}) END`
  return {
    name: `${table} sums the records`,
    query: `SELECT ${columns.join(" || '/' || ")} AS id, ${shown("made")} AS expected, ${shown("kept")} AS found
      FROM (${beside(`SELECT * FROM ${table}`, made, columns, figures)})
      WHERE ${figures
        .filter((figure) => figure !== "units")
        .map(differ)
        .join(" OR ")}
        -- Units may be fractions, and a sum of those depends on its order.
        OR ABS(kept_units - made_units) > 1e-9 * (1 + ABS(made_units))`,
    sentence: ({ expected, found, id }) => `${table} says ${found} for ${id}, but the records sum to ${expected}`
  }
}
