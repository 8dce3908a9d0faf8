/** Lets auto-reload store the last balance that it read, and a drop that it could not handle yet. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

const changes = [
  // The balance that the settings, an attempt or the regular check last read. If the current balance is lower, it has dropped since then.
  `ALTER TABLE tollgate_autoreload_settings ADD COLUMN looked INTEGER`,
  // Set to 1 if the balance fell below the threshold while no attempt could begin.
  `ALTER TABLE tollgate_autoreload_settings ADD COLUMN fell INTEGER NOT NULL DEFAULT 0 CHECK (fell IN (0, 1))`
]

export default Effect.flatMap(SqlClient, (sql) =>
  Effect.forEach(changes, (change) => sql.unsafe(change), { discard: true })
)
