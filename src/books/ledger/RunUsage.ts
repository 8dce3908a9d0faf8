/** Sums the usage of runs. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { fromRow } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"

export interface ModelSum {
  readonly model: string
  readonly requests: number
  readonly cost: Nano
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

/**
 * Sums the runs' calls by the model that served them, highest cost first. The condition on `budgets` holds for every call of a run and lets the query
 * use a partial index.
 */
export const usageOfRuns = (
  sql: SqlClient,
  tenant: string,
  runs: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<ModelSum>> =>
  Effect.map(
    Effect.orDie(
      sql<Omit<ModelSum, "cost"> & { readonly cost: string }>`SELECT d.model, COUNT(*) AS requests,
          CAST(SUM(r.cost) AS TEXT) AS cost, SUM(r.prompt_tokens) AS prompt_tokens, SUM(r.completion_tokens) AS completion_tokens
        FROM tollgate_usage_dimensions d
        CROSS JOIN tollgate_usage_records r ON r.dimensions = d.number AND instr(r.budgets, '"run_') > 0
        WHERE d.run_id IN (SELECT value FROM json_each(${JSON.stringify(runs)})) AND d.run_id <> '' AND +d.tenant_id = ${tenant}
        GROUP BY d.model ORDER BY SUM(r.cost) DESC, d.model`
    ),
    (rows) => rows.map((row) => ({ ...row, cost: fromRow(row.cost) }))
  )
