/** An index of accounts with credit in escrow. The cost of the sum for `/metrics` then does not depend on the number of other accounts. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe(`CREATE INDEX tollgate_ledger_accounts_held ON tollgate_ledger_accounts (held) WHERE held > 0`)
)
