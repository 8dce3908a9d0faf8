/** The results of verifying the books, and the last rows that each verification read. The next verification continues after them. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient, (sql) =>
  sql.unsafe(`CREATE TABLE tollgate_ledger_verifications (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    -- Whether it looked at everything, or at what came since an earlier one.
    whole INTEGER NOT NULL CHECK (whole IN (0, 1)),
    findings INTEGER NOT NULL,
    millis INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    record INTEGER NOT NULL,
    world INTEGER NOT NULL,
    revenue INTEGER NOT NULL
  ) STRICT`)
)
