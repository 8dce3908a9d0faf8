/** The log of charges: its tiles, its head and its keys. The service adds existing entries in the background. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_log_tiles (
    level INTEGER NOT NULL,
    n INTEGER NOT NULL,
    -- The row of the first entry, at level 0. Before the bytes, so reading it does not read them.
    first INTEGER,
    hashes BLOB NOT NULL,
    PRIMARY KEY (level, n)
  ) STRICT`,
  `CREATE INDEX tollgate_log_tiles_first ON tollgate_log_tiles (first)`,
  `CREATE TABLE tollgate_log_head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    origin TEXT NOT NULL,
    salt TEXT NOT NULL,
    size INTEGER NOT NULL CHECK (size >= 0),
    -- The row of the newest entry in the log.
    entry INTEGER NOT NULL,
    checkpoint TEXT NOT NULL
  ) STRICT`,
  `CREATE TABLE tollgate_log_keys (
    public TEXT PRIMARY KEY,
    -- NULL: the deployment's secret was lost, and the key signs no more.
    sealed TEXT,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
