/** Looks up API key names for modules that save only the ids. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

/** Returns key names by id. Deleted keys are absent. */
export const keyNames = (sql: SqlClient, ids: ReadonlyArray<string>): Effect.Effect<ReadonlyMap<string, string>> =>
  ids.length === 0
    ? Effect.succeed(new Map())
    : Effect.map(
        Effect.orDie(sql<{ readonly id: string; readonly name: string }>`SELECT id, name
          FROM tollgate_tenants_applications WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`),
        (rows) => new Map(rows.map(({ id, name }) => [id, name]))
      )
