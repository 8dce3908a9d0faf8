/**
 * An index of the accounts with credit in escrow, so that the cost of computing the sum for `/metrics` does not depend on the number of other
 * accounts.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe(`CREATE INDEX tollgate_ledger_accounts_held ON tollgate_ledger_accounts (held) WHERE held > 0`)
)
