/** The usage of each API key, by day and hour. The service adds existing records in the background. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const steps = [
  `CREATE TABLE tollgate_usage_by_key (
    application_id TEXT NOT NULL,
    grain INTEGER NOT NULL,
    start INTEGER NOT NULL,
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    requests INTEGER NOT NULL,
    successes INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL CHECK (cost >= 0),
    latency_ms INTEGER NOT NULL,
    PRIMARY KEY (application_id, grain, start, model, endpoint)
  ) STRICT, WITHOUT ROWID`,
  // The last record included in the totals.
  `CREATE TABLE tollgate_usage_by_key_end (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    record INTEGER NOT NULL
  ) STRICT`
]

export default Effect.flatMap(SqlClient, (sql) => Effect.forEach(steps, (step) => sql.unsafe(step), { discard: true }))
