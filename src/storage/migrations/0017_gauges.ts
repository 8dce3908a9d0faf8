/** The accounts with credit in escrow, so that its sum for `/metrics` costs what there is of them, and not what there are accounts. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe(`CREATE INDEX tollgate_ledger_accounts_held ON tollgate_ledger_accounts (held) WHERE held > 0`)
)
