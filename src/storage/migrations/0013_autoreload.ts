/** Auto-reload remembers which balance it has looked at, and a fall that it could not act on yet. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const changes = [
  // The balance when the settings, an attempt or the regular look last saw it: what it is below that has fallen unseen.
  `ALTER TABLE tollgate_autoreload_settings ADD COLUMN looked INTEGER`,
  // 1: it fell below the threshold while no attempt could begin.
  `ALTER TABLE tollgate_autoreload_settings ADD COLUMN fell INTEGER NOT NULL DEFAULT 0 CHECK (fell IN (0, 1))`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(changes, (change) => sql.unsafe(change), { discard: true })
)
