/** Reports the number and age of open generation jobs to the operator, by state. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

export interface OpenJobs {
  readonly status: string
  readonly count: number
  readonly oldest_at: number
}

export const openJobs = (sql: SqlClient): Effect.Effect<ReadonlyArray<OpenJobs>> =>
  Effect.orDie(
    sql<OpenJobs>`SELECT status, count(*) AS count, min(created_at) AS oldest_at FROM tollgate_media_jobs
      WHERE settled = 0 GROUP BY status ORDER BY status`
  )
