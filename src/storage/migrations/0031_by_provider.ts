/** Totals over all tenants, by provider, day and model. The service adds existing records in the background. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_usage_by_provider (
    start INTEGER NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    successes INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    units REAL NOT NULL,
    cost INTEGER NOT NULL CHECK (cost >= 0),
    uncollected INTEGER NOT NULL CHECK (uncollected >= 0),
    PRIMARY KEY (start, provider, model)
  ) STRICT, WITHOUT ROWID`,
  // The last record included in the totals.
  `CREATE TABLE tollgate_usage_by_provider_end (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    record INTEGER NOT NULL
  ) STRICT`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
