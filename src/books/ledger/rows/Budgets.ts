/**
 * Reads and writes budget rows. The transactions that reserve and settle a call change the budgets that count the call. A call without budgets writes
 * none of these rows.
 */
import { monthOf } from "../../../kernel/Moment.ts"
import type { Nano } from "../../../kernel/Money.ts"
import { change, insert, query, run } from "./SqlEffect.ts"
import type { SqlSteps } from "./SqlEffect.ts"
import type { Spending } from "../rules/Books.ts"
import type { Budget, BudgetKind, BudgetPeriod, BudgetTerms } from "../rules/Budget.ts"
import { tails } from "./RollupLag.ts"

const counterColumns = [
  "start",
  "spent",
  "reserved",
  "ceiling",
  "tokens",
  "tokens_reserved",
  "requests",
  "open",
  "crossed"
] as const

const columns = ["id", "kind", "tenant_id", "anchor", "period", "usd", "terms", ...counterColumns] as const

export const selection = `id, kind, tenant_id, anchor, period, CAST(usd AS TEXT) AS usd, terms, start, CAST(spent AS TEXT) AS spent,
  CAST(reserved AS TEXT) AS reserved, CAST(ceiling AS TEXT) AS ceiling, tokens, tokens_reserved, requests, open, crossed`

export interface BudgetRow {
  readonly id: string
  readonly kind: BudgetKind
  readonly tenant_id: string | null
  readonly anchor: string
  readonly period: BudgetPeriod
  readonly usd: string | null
  /** The other terms, as JSON. */
  readonly terms: string
  readonly start: number
  readonly spent: string
  readonly reserved: string
  readonly ceiling: string | null
  readonly tokens: number
  readonly tokens_reserved: number
  readonly requests: number
  readonly open: number
  readonly crossed: number
}

export const budgetOf = (row: BudgetRow): Budget => ({
  id: row.id,
  kind: row.kind,
  tenant_id: row.tenant_id ?? undefined,
  anchor: row.anchor,
  terms: termsOf(row),
  start: row.start,
  spent: BigInt(row.spent),
  reserved: BigInt(row.reserved),
  ceiling: nanoOf(row.ceiling),
  tokens: row.tokens,
  tokens_reserved: row.tokens_reserved,
  requests: row.requests,
  open: row.open,
  crossed: row.crossed
})

const nanoOf = (text: string | null): Nano | undefined => (text === null ? undefined : BigInt(text))

interface StoredTerms extends Omit<BudgetTerms, "limit" | "period" | "raises"> {
  readonly limit: Omit<BudgetTerms["limit"], "usd">
  readonly raises: ReadonlyArray<{ readonly usd: string; readonly until: number }>
}

const termsOf = ({ period, terms: text, usd }: BudgetRow): BudgetTerms => {
  const { limit, raises, ...rest } = JSON.parse(text) as StoredTerms
  return {
    ...rest,
    period,
    limit: { ...limit, usd: nanoOf(usd) },
    raises: raises.map((raise) => ({ usd: BigInt(raise.usd), until: raise.until }))
  }
}

const storedTerms = (terms: BudgetTerms): string => {
  const { limit, period: _, raises, ...rest } = terms
  const { usd: __, ...counted } = limit
  return JSON.stringify({
    ...rest,
    limit: counted,
    raises: raises.map(({ until, usd }) => ({ usd: `${usd}`, until }))
  } satisfies StoredTerms)
}

const rowOf = (budget: Budget): ReadonlyArray<unknown> => [
  budget.id,
  budget.kind,
  budget.tenant_id ?? null,
  budget.anchor,
  budget.terms.period,
  budget.terms.limit.usd ?? null,
  storedTerms(budget.terms),
  ...countersOf(budget)
]

const countersOf = (budget: Budget): ReadonlyArray<unknown> => counterColumns.map((column) => budget[column] ?? null)

const among = "(SELECT value FROM json_each(?))"

/** Loads the budgets with one of these anchors or ids, ordered by id. With `locked`, the rows are locked until the batch commits. */
export function* load(
  anchors: Iterable<string>,
  ids: Iterable<string>,
  locked: boolean
): SqlSteps<ReadonlyArray<Budget>> {
  const text = `SELECT ${selection} FROM tollgate_ledger_budgets WHERE anchor IN ${among} OR id IN ${among} ORDER BY id`
  const rows = yield* query(locked ? `${text} FOR UPDATE` : text, [
    JSON.stringify([...anchors]),
    JSON.stringify([...ids])
  ])
  return (rows as ReadonlyArray<BudgetRow>).map(budgetOf)
}

/** Groups budget ids by anchor, into `lists`. Each of `anchors` gets an array, even if no budget has that anchor. */
export const groupInto = (
  lists: Map<string, ReadonlyArray<string>>,
  anchors: Iterable<string>,
  budgets: ReadonlyArray<Budget>
): void => {
  for (const anchor of anchors) lists.set(anchor, none)
  for (const { anchor, id } of budgets) {
    const list = lists.get(anchor)
    if (list !== undefined && !list.includes(id)) lists.set(anchor, [...list, id])
  }
}

const none: ReadonlyArray<string> = []

/** Writes the budgets that a batch has changed. `before` returns a budget's state before the batch, if there is one. */
export function* write(
  changed: ReadonlyMap<string, Budget | undefined>,
  before: (id: string) => Budget | undefined
): SqlSteps<void> {
  if (changed.size === 0) return
  const counters: Array<ReadonlyArray<unknown>> = []
  const rows: Array<ReadonlyArray<unknown>> = []
  const gone: Array<string> = []
  for (const [id, budget] of changed) {
    const old = before(id)
    if (budget === undefined) gone.push(id)
    else if (old?.terms === budget.terms) counters.push([...countersOf(budget), id])
    else rows.push(rowOf(budget))
  }
  yield* change("tollgate_ledger_budgets", counterColumns, "id", counters)
  yield* insert("tollgate_ledger_budgets", columns, rows, replaced)
  if (gone.length > 0) yield* run(`DELETE FROM tollgate_ledger_budgets WHERE id IN ${among}`, [JSON.stringify(gone)])
}

const replaced = `(id) DO UPDATE SET ${columns
  .slice(1)
  .map((column) => `${column} = excluded.${column}`)
  .join(", ")}`

/** Builds an SQL expression for an application's charges since `start`, which must begin a UTC day. Its parameters are `spentParams`. */
export const spentSince = (start: string): string => `(
    COALESCE((SELECT SUM(u.cost) FROM tollgate_usage_by_tenant u
      WHERE u.tenant_id = ? AND u.start >= ${start} AND u.application_id = ?), 0) +
    COALESCE((SELECT SUM(r.cost) FROM ${tails("SELECT ? AS id")} WHERE r.at >= ${start} AND d.application_id = ?), 0))`

export const spentParams = (tenant: string, application: string) => [tenant, application, tenant, application]

export const reservedOf = `(SELECT COALESCE(SUM(r.amount), 0) FROM tollgate_ledger_reservations r
    CROSS JOIN tollgate_usage_dimensions d ON d.number = r.dimensions WHERE d.application_id = ?)`

/** Reads an application's charges, in total and in the month of `at`, and its open reservations. */
export function* spendingOf(tenant: string, application: string, at: number): SqlSteps<Spending> {
  const params = spentParams(tenant, application)
  const [row] = yield* query(
    `SELECT CAST(${spentSince("0")} AS TEXT) AS total, CAST(${spentSince(String(monthOf(at)))} AS TEXT) AS month,
      CAST(${reservedOf} AS TEXT) AS reserved`,
    [...params, ...params, application]
  )
  return { total: BigInt(row.total), month: BigInt(row.month), reserved: BigInt(row.reserved) }
}
