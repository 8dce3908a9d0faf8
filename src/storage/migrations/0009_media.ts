/** Asynchronous jobs that generate images and videos, with their quote and the call that reserves it. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const tables = [
  // `vendor_id` is set once the vendor has accepted the job, and `output` once a valid result has arrived.
  `CREATE TABLE tollgate_media_jobs (
    id TEXT PRIMARY KEY,
    call TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL,
    route TEXT NOT NULL CHECK (route IN ('media', 'images')),
    type TEXT NOT NULL CHECK (type IN ('video', 'image')),
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    upstream TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    vendor_id TEXT,
    status TEXT NOT NULL CHECK (status IN ('SUBMITTING', 'IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'CANCELLED')),
    queue_position INTEGER,
    units INTEGER NOT NULL,
    unit TEXT NOT NULL,
    quote INTEGER NOT NULL CHECK (quote >= 0),
    settled INTEGER NOT NULL CHECK (settled IN (0, 1)),
    cost INTEGER NOT NULL CHECK (cost >= 0 AND cost <= quote),
    inference_time REAL,
    output TEXT,
    error TEXT,
    error_type TEXT,
    cancel_requested INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX tollgate_media_jobs_open ON tollgate_media_jobs (created_at) WHERE settled = 0`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(tables, (table) => sql.unsafe(table), { discard: true })
)
