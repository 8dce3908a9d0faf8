/** Limits an index of usage records to the calls of runs, because only these are looked up in it. Other calls with budgets no longer write to it. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `DROP INDEX tollgate_usage_records_budgeted`,
  `CREATE INDEX tollgate_usage_records_of_runs ON tollgate_usage_records (dimensions) WHERE instr(budgets, '"run_') > 0`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
