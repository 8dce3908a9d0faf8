/** The comparison of vendors' bills with the metered calls, by vendor and UTC day, and the pages of a bill that is being read. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_reconciliation_days (
    vendor TEXT NOT NULL,
    day TEXT NOT NULL,
    reconciled_at INTEGER NOT NULL,
    billed INTEGER NOT NULL,
    expected INTEGER NOT NULL,
    charged INTEGER NOT NULL,
    -- As JSON, with amounts as strings.
    causes TEXT NOT NULL,
    models TEXT NOT NULL,
    differences TEXT NOT NULL,
    PRIMARY KEY (vendor, day)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE tollgate_reconciliation_pages (
    vendor TEXT NOT NULL,
    first TEXT NOT NULL,
    last TEXT NOT NULL,
    report TEXT NOT NULL,
    number INTEGER NOT NULL,
    -- The cursor of the next page. NULL: this is the last one.
    next TEXT,
    -- As JSON, with amounts as strings.
    lines TEXT NOT NULL,
    read_at INTEGER NOT NULL,
    PRIMARY KEY (vendor, first, last, report, number)
  ) STRICT`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
