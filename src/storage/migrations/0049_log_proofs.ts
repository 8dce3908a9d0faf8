/** The log's witnesses and published checkpoint, and the daily proofs of liabilities. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_log_published (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    size INTEGER NOT NULL CHECK (size >= 0),
    -- The row of the newest entry in the checkpoint.
    entry INTEGER NOT NULL,
    -- With the witnesses' cosignatures.
    checkpoint TEXT NOT NULL,
    cosignatures INTEGER NOT NULL,
    -- When as many witnesses as required last cosigned. 0: never.
    cosigned_at INTEGER NOT NULL
  ) STRICT`,
  `CREATE TABLE tollgate_log_witnesses (
    -- The verifier key.
    witness TEXT PRIMARY KEY,
    -- The size of the newest checkpoint that it cosigned, and when.
    size INTEGER NOT NULL,
    cosigned_at INTEGER NOT NULL,
    -- Why the witness contradicts the log. NULL: it does not.
    conflict TEXT
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_log_liabilities (
    day TEXT PRIMARY KEY,
    -- The row of the last entry of the day, and the number of all entries up to it.
    entry INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    -- NULL while the tree is being built.
    statement TEXT
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_log_liability_blocks (
    day TEXT NOT NULL,
    n INTEGER NOT NULL,
    -- The numbers of the first and the last account.
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    width INTEGER NOT NULL,
    -- In digits, because a sum may exceed 64 bits.
    sum TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (day, n)
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
