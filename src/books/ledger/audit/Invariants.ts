/**
 * Invariants of the books, as database queries. Each check returns its violations with the stored and the expected figure. `Audit` checks the rules
 * between rows and the sums of rows. Other modules define further checks, and `app/Checks` collects all of them.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { Nano } from "../../../kernel/Money.ts"
import { turn } from "../../../kernel/Pieces.ts"
import * as KeyTotals from "../totals/KeyTotals.ts"
import * as ProviderTotals from "../totals/ProviderTotals.ts"
import * as Budgets from "../rows/Budgets.ts"
import { fastPace } from "./Checkpoint.ts"
import type { Pace } from "./Checkpoint.ts"
import { findingsMax, text, usd } from "../rules/Check.ts"
import type { Check, CheckRow, Finding } from "../rules/Check.ts"
import { outsideSources } from "../rows/Relations.ts"
import { accountsTable } from "../rows/Rows.ts"
import * as SortedIndex from "../totals/SortedIndex.ts"
import * as Totals from "../totals/Totals.ts"

/** Runs the checks one by one. A query reads one snapshot, so it also works on a live database. */
export const lookAt = (
  checks: ReadonlyArray<Check>,
  { pause }: Pace = fastPace
): Effect.Effect<ReadonlyArray<Finding>, never, SqlClient> =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.forEach(checks, (check) =>
      Effect.map(
        Effect.zipRight(
          pause,
          "find" in check
            ? check.find(sql)
            : sql.unsafe<CheckRow>(`SELECT * FROM (${check.query}) findings LIMIT ${findingsMax}`)
        ),
        (rows) => rows.map((row): Finding => ({ check: check.name, ...row, message: check.sentence(row) }))
      )
    ).pipe(
      Effect.map((found) => found.flat()),
      Effect.orDie
    )
  )

/**
 * Selects the four sums of double-entry bookkeeping: the customers' balances, the transfers' `escrow`, `revenue` (charges), and the outside `world`.
 * They add up to 0.
 */
const houseAccounts = `(
  SELECT world, revenue, customers, escrow FROM (
    SELECT COALESCE(SUM(CASE type WHEN 'credit' THEN -amount ELSE amount END) FILTER (WHERE source IN ${outsideSources}), 0) AS world,
      COALESCE(SUM(amount) FILTER (WHERE type = 'debit' AND source IS NULL), 0) AS revenue
    FROM tollgate_ledger_entries
  ) moved, (
    SELECT COALESCE(SUM(giftable + granted), 0) AS customers, COALESCE(SUM(held), 0) AS escrow FROM ${accountsTable} accounts
  ) kept)`

/** The four sums, in nano-USD. */
export interface TrialBalance {
  /** The outside world's balance: credit taken back, minus purchases and grants. */
  readonly world: Nano
  readonly revenue: Nano
  readonly customers: Nano
  readonly escrow: Nano
}

/** Computes the four sums from all entries and accounts. */
export const trialBalance: Effect.Effect<TrialBalance, never, SqlClient> = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    Effect.orDie(
      sql<{ readonly [account in keyof TrialBalance]: string }>`SELECT CAST(world AS TEXT) AS world,
        CAST(revenue AS TEXT) AS revenue, CAST(customers AS TEXT) AS customers, CAST(escrow AS TEXT) AS escrow
        FROM ${sql.literal(houseAccounts)} houses`
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
        format('giftable %s, granted %s, held %s, reserved %s', giftable, granted, held, reserved) AS found
      FROM ${accountsTable} WHERE giftable < 0 OR granted < 0 OR held < 0 OR reserved < 0`,
    sentence: ({ found, id }) => `${id} is below zero: ${found} nano-USD`
  },
  {
    name: "reserved is the sum of open reservations",
    isShort: true,
    query: `SELECT id, ${text("SUM(held)")} AS expected, COALESCE(${text("MAX(reserved)")}, 'no account') AS found FROM (
        SELECT id, reserved, 0 AS held FROM ${accountsTable}
        UNION ALL SELECT COALESCE(d.billing_account_id, 'an unknown account'), NULL, r.amount
          FROM tollgate_ledger_reservations r LEFT JOIN tollgate_usage_dimensions d ON d.number = r.dimensions
      ) sides GROUP BY id HAVING MAX(reserved) IS DISTINCT FROM SUM(held)`,
    sentence: ({ expected, found, id }) =>
      `${id} has ${usd(found)} reserved, but its open calls reserve ${usd(expected)}`
  },
  {
    name: "reserved is within the balance",
    isShort: true,
    query: `SELECT id, ${text("giftable + granted")} AS expected, ${text("reserved")} AS found
      FROM ${accountsTable} WHERE reserved > giftable + granted`,
    sentence: ({ expected, found, id }) => `${id} has ${usd(found)} reserved with a balance of ${usd(expected)}`
  },
  {
    name: "an account in debt has no free credit",
    isShort: true,
    query: `SELECT id, '0' AS expected, ${text("giftable + granted - reserved")} AS found
      FROM ${accountsTable} accounts WHERE debts IS NOT NULL AND giftable + granted > reserved`,
    sentence: ({ found, id }) => `${id} owes credit for a refund or dispute, but has ${usd(found)} free`
  }
]

// ---- usage ----------------------------------------------------------------------------------------------------------------

const usage: ReadonlyArray<Check> = [
  {
    name: "a call is recorded once",
    find: (sql) => repeatedIds(sql),
    sentence: ({ found, id }) => `usage record ${id} exists ${found} times`
  },
  {
    name: "a call is either open or recorded",
    isShort: true,
    query: `SELECT r.id AS id, 'no reservation' AS expected, 'a reservation and the record ' || u.id AS found
      FROM tollgate_ledger_reservations r JOIN tollgate_usage_records u ON u.id = 'use_' || substr(r.id, instr(r.id, '_') + 1)`,
    sentence: ({ found, id }) => `call ${id} is both settled and open: it has ${found}`
  }
]

/** The number of ids per slice. Reading a slice takes a few milliseconds. */
const idsInSlice = 16_384

const repeatedIds = Effect.fnUntraced(function* (sql: SqlClient) {
  const found: Array<CheckRow> = []
  for (let last: string | null = ""; last !== null && found.length < findingsMax;) {
    const slice: ReadonlyArray<{ readonly end: string | null }> = yield* sql<{
      readonly end: string | null
    }>`SELECT MAX(id) AS end
      FROM (SELECT id FROM tollgate_usage_records WHERE id > ${last} ORDER BY id LIMIT ${idsInSlice}) slice`
    const end: string | null = slice[0]!.end
    const rows =
      yield* sql<CheckRow>`SELECT id, '1' AS expected, CAST(COUNT(*) AS TEXT) AS found FROM tollgate_usage_records
      WHERE id > ${last} AND id <= ${end} GROUP BY id HAVING COUNT(*) > 1 LIMIT ${findingsMax}`
    found.push(...rows)
    last = end
    yield* turn
  }
  return found.slice(0, findingsMax)
})

const sortedRuns: Check = {
  name: "sorted runs hold the records",
  find: Effect.fnUntraced(function* (sql) {
    const faults: Array<CheckRow> = []
    for (const run of yield* SortedIndex.allRuns(sql)) {
      faults.push(...(yield* SortedIndex.faultsOf(sql, run.tenant, run)))
      if (faults.length >= findingsMax) break
    }
    return faults.slice(0, findingsMax)
  }),
  sentence: ({ expected, found, id }) => `the sorted run ${id} should be ${expected}, but is ${found}`
}

const tallies: Check = {
  name: "totals of runs equal the records",
  find: Effect.fnUntraced(function* (sql) {
    const faults: Array<CheckRow> = []
    for (const run of yield* Totals.allRuns(sql)) {
      faults.push(...(yield* Totals.faultsOf(sql, run.tenant, run)))
      if (faults.length >= findingsMax) break
    }
    return faults.slice(0, findingsMax)
  }),
  sentence: ({ expected, found, id }) => `the ${id} should be ${expected}, but is ${found}`
}

const byProvider: Check = {
  name: "totals of providers equal the records",
  find: (sql) => Effect.map(ProviderTotals.faultsOf(sql), (faults) => faults.slice(0, findingsMax)),
  sentence: ({ expected, found, id }) => `in the totals of providers, ${id} should be ${expected}, but is ${found}`
}

const byKey: Check = {
  name: "sums by key equal the records",
  find: (sql) => Effect.map(KeyTotals.faultsOf(sql), (faults) => faults.slice(0, findingsMax)),
  sentence: ({ expected, found, id }) => `in the sums by key, ${id} should be ${expected}, but is ${found}`
}

// ---- limits of API keys ---------------------------------------------------------------------------------------------------

interface LimitedKey {
  readonly id: string
  readonly tenant_id: string
}

/** Compares a column of each key's limit with the computed figure. */
const compare = (column: "reserved" | "spent") =>
  Effect.fnUntraced(function* (sql: SqlClient) {
    const found: Array<CheckRow> = []
    const limits = yield* sql<LimitedKey>`SELECT id, tenant_id FROM tollgate_ledger_budgets WHERE kind = 'key'`
    for (const { id, tenant_id } of limits) {
      const [figure, params] =
        column === "spent"
          ? [Budgets.spentSince("l.start"), Budgets.spentParams(tenant_id, id)]
          : [Budgets.reservedOf, [id]]
      const [row] = yield* sql.unsafe<CheckRow>(
        `SELECT id, CAST(expected AS TEXT) AS expected, CAST(found AS TEXT) AS found FROM (
          SELECT l.id, ${figure} AS expected, l.${column} AS found FROM tollgate_ledger_budgets l
          WHERE l.id = ?) figures WHERE expected <> found`,
        [...params, id]
      )
      if (row !== undefined) found.push(row)
    }
    return found
  })

/** Builds a query that compares a column of each budget with a sum over the rows `r` that list it. Without budgets, it reads no such rows. */
const summed = (column: string, sum: string, rows: string): string =>
  `SELECT g.id, CAST(COALESCE(s.n, 0) AS TEXT) AS expected, CAST(g.${column} AS TEXT) AS found FROM tollgate_ledger_budgets g
    LEFT JOIN (SELECT g.id, ${sum} AS n FROM (SELECT 1 FROM tollgate_ledger_budgets WHERE kind <> 'key' LIMIT 1) o
        CROSS JOIN ${rows} r ON true CROSS JOIN json_each(r.budgets) b ON true
        CROSS JOIN tollgate_ledger_budgets g ON g.id = b.value
      WHERE r.budgets IS NOT NULL ${rows === "tollgate_usage_records" ? "AND r.at >= g.start" : ""} GROUP BY g.id) s ON s.id = g.id
    WHERE g.kind <> 'key' AND g.${column} <> COALESCE(s.n, 0)`

const budgetCheck = (column: string, sum: string, isOpen: boolean): Check => ({
  name: `a budget's ${column} is the sum of its ${isOpen ? "open calls" : "records"}`,
  ...(isOpen && { isShort: true }),
  query: summed(column, sum, isOpen ? "tollgate_ledger_reservations" : "tollgate_usage_records"),
  sentence: ({ expected, found, id }) =>
    `the budget ${id} states ${found} as ${column}, but its ${isOpen ? "open calls" : "records"} sum to ${expected}`
})

const budgets: ReadonlyArray<Check> = [
  {
    name: "a limit's spent is the sum of its key's charges",
    isShort: true,
    find: compare("spent"),
    sentence: ({ expected, found, id }) =>
      `the limit of ${id} states ${usd(found)} spent, but the records of its period sum to ${usd(expected)}`
  },
  {
    name: "a limit's reserved is the sum of its key's reservations",
    isShort: true,
    find: compare("reserved"),
    sentence: ({ expected, found, id }) =>
      `the limit of ${id} states ${usd(found)} reserved, but its open calls reserve ${usd(expected)}`
  },
  {
    name: "a key spends no more than its limit",
    isShort: true,
    query: `SELECT id, CAST(ceiling AS TEXT) AS expected, CAST(spent + reserved AS TEXT) AS found
      FROM tollgate_ledger_budgets WHERE spent + reserved > ceiling`,
    sentence: ({ expected, found, id }) =>
      `${id} has spent and reserved ${usd(found)}, but only ${usd(expected)} are allowed`
  },
  budgetCheck("reserved", "SUM(r.amount)", true),
  budgetCheck("tokens_reserved", "SUM(r.tokens)", true),
  budgetCheck("open", "COUNT(*)", true),
  budgetCheck("spent", "SUM(r.cost)", false),
  budgetCheck("tokens", "SUM(r.prompt_tokens + r.completion_tokens)", false)
]

export const checks: ReadonlyArray<Check> = [...accounts, ...usage, sortedRuns, tallies, byProvider, byKey, ...budgets]
