import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Writer } from "../ledger/Writer.ts"
import { NotReady } from "./Api.ts"
import * as Gauges from "./Gauges.ts"
import { Metrics } from "./Metrics.ts"

export const OpsHttp = HttpApiBuilder.group(
  Api,
  "ops",
  Effect.fnUntraced(function* (handlers) {
    const sql = yield* SqlClient
    const writer = yield* Writer
    const metrics = yield* Metrics

    /** An empty transaction goes the whole way of a real one, to the disk and back. */
    const ready = Effect.all([sql`SELECT 1`, writer.submit({ postings: [], statements: [] })]).pipe(
      Effect.timeout("2 seconds"),
      Effect.sandbox,
      Effect.mapBoth({ onFailure: () => new NotReady(), onSuccess: () => ({ status: "ok" as const }) })
    )

    const gauges = Effect.map(Effect.provideService(Gauges.read, SqlClient, sql), metrics.setGauges)

    return handlers
      .handle("health", () => Effect.succeed({ status: "ok" as const }))
      .handle("ready", () => ready)
      .handle("metrics", () =>
        Effect.map(Effect.andThen(gauges, Effect.promise(metrics.text)), (text) =>
          HttpServerResponse.text(text, { contentType: metrics.content_type })
        )
      )
  })
)
