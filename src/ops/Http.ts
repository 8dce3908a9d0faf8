import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import { Api } from "../Api.ts"
import { Writer } from "../ledger/Writer.ts"
import { NotReady } from "./Api.ts"
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

    const gauges = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const [held] = yield* sql<{
        reserved: number
        escrowed: number
      }>`SELECT COALESCE(SUM(reserved), 0) / 1e9 AS reserved,
        COALESCE(SUM(held), 0) / 1e9 AS escrowed FROM tollgate_ledger_accounts WHERE reserved > 0 OR held > 0`
      const [open] = yield* sql<{ calls: number; oldest: number | null }>`SELECT count(*) AS calls, min(at) AS oldest
        FROM tollgate_ledger_reservations`
      metrics.setGauges({
        reserved_usd: held?.reserved ?? 0,
        escrowed_usd: held?.escrowed ?? 0,
        open_calls: open?.calls ?? 0,
        oldest_unsettled_seconds: open?.oldest == null ? 0 : Math.max(0, (now - open.oldest) / 1000)
      })
    }).pipe(Effect.orDie)

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
