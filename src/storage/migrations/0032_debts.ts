/** Debts: the parts of payments that accounts could not pay back. Earlier refunds and disputes are handled the next time the service starts. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // A JSON object of amounts by payment; null if there is no debt.
  `ALTER TABLE tollgate_ledger_accounts ADD COLUMN debts TEXT`,
  // The part of `due` that is in the books, as taken back or owed. It differs from `due` if an earlier version wrote `due`.
  `ALTER TABLE tollgate_payments_payments ADD COLUMN followed INTEGER`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
