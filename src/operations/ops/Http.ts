import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { Gate } from "../../books/gate/Gate.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import { Identity } from "../../upstream/identity/Identity.ts"
import { Indexes } from "../../storage/engine/Indexes.ts"
import { OpsApi } from "./Api.ts"
import * as Gauges from "./Gauges.ts"
import { Loops } from "./Loops.ts"
import { Metrics } from "./Metrics.ts"
import { Readiness } from "./Readiness.ts"
import { MetricsAccess } from "./Settings.ts"
import { Siblings } from "./Siblings.ts"
import type { Figures } from "./Siblings.ts"

export const OpsHttp = HttpApiBuilder.group(
  contract.add(OpsApi),
  "ops",
  Effect.fnUntraced(function* (handlers) {
    const ledger = yield* Ledger
    const metrics = yield* Metrics
    const access = yield* MetricsAccess
    const limits = yield* RateLimits
    const readiness = yield* Readiness
    const loops = yield* Loops
    const gate = yield* Gate
    const indexes = yield* Indexes
    const identity = yield* Identity
    const drifts = yield* Gauges.BillDrifts
    const witnesses = yield* Gauges.WitnessStates

    const work = Effect.zipWith(gate.unsettled, readiness.node, (unsettled, node) =>
      metrics.setWork({ unsettled, node, missing_indexes: indexes.missing(), loops: loops.figures() })
    )

    const siblings = yield* Siblings
    const others = siblings === undefined ? Effect.succeed<ReadonlyArray<Figures>>([]) : siblings.others
    if (siblings !== undefined)
      yield* siblings.answer(
        Effect.zipRight(
          work,
          Effect.map(Effect.promise(metrics.ownText), (metrics) => ({ metrics, loops: loops.figures() }))
        )
      )

    const gauges = Effect.map(Effect.provideService(Gauges.read, Ledger, ledger), metrics.setGauges)

    return handlers
      .handle("health", () => Effect.succeed({ status: "ok" as const }))
      .handle("ready", () =>
        Effect.zipRight(
          readiness.check,
          Effect.zipWith(readiness.node, identity.unreachable, (node, unreachable) => ({
            status: unreachable.length === 0 ? ("ok" as const) : ("degraded" as const),
            ...(node !== undefined && { node }),
            ...(unreachable.length > 0 && { unreachable_identity_providers: unreachable })
          }))
        )
      )
      .handle("metrics", ({ request }) =>
        access.check(request.headers["authorization"]).pipe(
          // Limits the rate of invalid tokens per address.
          Effect.catchTag("InvalidToken", (problem) => Effect.zipRight(limits.take("metrics", request), problem)),
          Effect.andThen(gauges),
          Effect.andThen(work),
          Effect.andThen(Effect.map(drifts, metrics.setDrifts)),
          Effect.andThen(Effect.map(witnesses, metrics.setWitnesses)),
          Effect.andThen(others),
          Effect.andThen((others) => Effect.promise(() => metrics.text(others.map(({ metrics }) => metrics)))),
          Effect.map((text) => HttpServerResponse.text(text, { contentType: metrics.content_type }))
        )
      )
  })
)
