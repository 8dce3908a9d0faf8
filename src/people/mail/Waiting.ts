/** Reads the waiting email count and the oldest email's creation time, for the operator. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export interface WaitingLetters {
  readonly waiting: number
  /** The creation time of the oldest waiting email; null if no email is waiting. */
  readonly oldest_at: number | null
}

export const waitingLetters = (sql: SqlClient): Effect.Effect<WaitingLetters> =>
  Effect.map(
    Effect.orDie(
      sql<WaitingLetters>`SELECT count(*) AS waiting, min(created_at) AS oldest_at FROM tollgate_mail_outbox
        WHERE status IN ('waiting', 'sending')`
    ),
    ([row]) => row!
  )
