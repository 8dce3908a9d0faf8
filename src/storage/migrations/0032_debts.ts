/** Accounts owe what they could not give back of a payment. Payments that were refunded or disputed before are followed at the next start. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  // A JSON object: by payment the amount. Null where nothing is owed.
  `ALTER TABLE tollgate_ledger_accounts ADD COLUMN debts TEXT`,
  // What of `due` the books follow: it was taken back, or is owed. Another than `due` where an earlier version wrote that.
  `ALTER TABLE tollgate_payments_payments ADD COLUMN followed INTEGER`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
