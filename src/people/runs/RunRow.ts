/** Rows of runs, and SQL conditions on them. A run's limits and counters are in the budget with the same id. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment, Statement } from "@effect/sql/Statement"
import type { Budget } from "../../books/ledger/rules/Budget.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { AccountId, ApplicationId, RunId, TenantId } from "../../kernel/Ids.ts"
import { tagsOf } from "../../kernel/Labels.ts"
import { isReached } from "../tenants/ApplicationRow.ts"
import { openMax } from "./Run.ts"
import type { Run } from "./Run.ts"

export interface Row {
  readonly id: RunId
  readonly tenant_id: TenantId
  readonly account_id: AccountId
  readonly application_id: ApplicationId
  /** The parent run; null if the parent is the API key. */
  readonly parent: RunId | null
  /** The ids of the ancestors from the top, followed by the run's id, separated by `/`. */
  readonly path: string
  readonly level: number
  readonly name: string
  readonly key_hash: string
  readonly key_prefix: string
  /** A JSON array; null if only the API key's list applies. */
  readonly models: string | null
  readonly tags: string
  readonly end_user: string
  readonly created_at: number
  readonly expires_at: number
  readonly ended_at: number | null
}

/** Returns the run and its ancestors, nearest first. */
export const runsOf = (path: string): ReadonlyArray<RunId> => (path.split("/") as Array<RunId>).toReversed()

export const pathOf = (runs: ReadonlyArray<string>): string => runs.toReversed().join("/")

/** Selects the run with this path and all runs below it. `0` is the character after `/`. */
export const within = (sql: SqlClient, path: string): Fragment =>
  sql`(path = ${path} OR (path > ${`${path}/`} AND path < ${`${path}0`}))`

/** Selects a row if a tenant may open another run. An index covers the query, because the query blocks the writer. */
export const hasRoom = (sql: SqlClient, tenant: string, now: number): Statement<unknown> =>
  sql`SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM tollgate_runs WHERE tenant_id = ${tenant} AND ended_at IS NULL
    AND expires_at > ${now} LIMIT 1 OFFSET ${sql.literal(String(openMax - 1))})`

/** Selects the runs that a caller may see. A user sees the runs of the API keys that they may see. */
export const isSeen = (
  sql: SqlClient,
  { account_id, application_id, runs, tenant_id }: Pick<Caller, "account_id" | "application_id" | "runs" | "tenant_id">
): Fragment => {
  if (runs !== undefined) return within(sql, pathOf(runs))
  return application_id === null
    ? sql`tenant_id = ${tenant_id} AND ${isReached(sql, { account_id, tenant_id })}`
    : sql`application_id = ${application_id}`
}

export const modelsOf = ({ models }: Pick<Row, "models">): ReadonlyArray<string> | undefined =>
  models === null ? undefined : (JSON.parse(models) as ReadonlyArray<string>)

export const shown = (row: Row, budget: Budget, now: number): Run => {
  const { requests, reserved, spent, terms, tokens, tokens_reserved } = budget
  const models = modelsOf(row)
  return {
    id: row.id,
    name: row.name,
    application_id: row.application_id,
    parent: row.parent,
    level: row.level,
    key_prefix: row.key_prefix,
    limit: terms.limit,
    spent: { usd: spent, tokens, requests },
    reserved: { usd: reserved, tokens: tokens_reserved },
    open_calls: budget.open,
    ...(models !== undefined && { models }),
    tags: tagsOf(row.tags),
    created_at: row.created_at,
    expires_at: row.expires_at,
    ended_at: row.ended_at ?? (row.expires_at <= now ? row.expires_at : null)
  }
}

/** Ends all open runs, because their keys were issued under the old secret. */
export const runKeysEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_runs WHERE ended_at IS NULL`,
  statements: (sql, now) => [statement(sql`UPDATE tollgate_runs SET ended_at = ${now} WHERE ended_at IS NULL`)],
  notice: (n) => `${n} runs end; their keys are no longer accepted`
}
