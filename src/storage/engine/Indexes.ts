/**
 * The indexes that a version adds to existing tables. On PostgreSQL, they are built while nodes serve (`postgres/Indexes`). On SQLite, a migration
 * builds them before the service starts.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Option } from "effect"
import * as Loop from "../../kernel/Loop.ts"
import type { Job } from "../../kernel/Loop.ts"
import { Postgres } from "../postgres/Client.ts"
import * as PostgresIndexes from "../postgres/Indexes.ts"

export interface IndexesContract {
  /** Returns the number of missing indexes. Returns `undefined` on SQLite, and before this node's first check. */
  readonly missing: () => number | undefined
  /** The jobs that build the missing indexes. `layerJobs` runs them. */
  readonly jobs: ReadonlyArray<Job>
}

export class Indexes extends Context.Tag("tollgate/sql/Indexes")<Indexes, IndexesContract>() {
  static readonly layer: Layer.Layer<Indexes, never, SqlClient> = Layer.suspend(() =>
    Layer.scoped(
      Indexes,
      Effect.flatMap(Effect.serviceOption(Postgres), (postgres) =>
        Option.isNone(postgres)
          ? Effect.succeed<IndexesContract>({ missing: () => undefined, jobs: [] })
          : Effect.provideService(PostgresIndexes.make, Postgres, postgres.value)
      )
    )
  )
  static readonly layerJobs = Layer.suspend(() => Loop.layer(Indexes, ({ jobs }) => jobs))
}
