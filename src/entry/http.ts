/** `tollgate/http`: the whole service as an application of the platform, to be mounted in a host's server. */
import { HttpApiBuilder } from "@effect/platform"
import { Effect, Layer } from "effect"
import { domains, http } from "../App.ts"
import { decodeFile } from "../Config.ts"
import type { EnvironmentFacts } from "../Config.ts"
import * as Deployment from "../Deployment.ts"
import { Gate } from "../gate/Gate.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import { Jobs } from "../media/Jobs.ts"
import { Metrics } from "../ops/Metrics.ts"

export { Api } from "../Api.ts"
export { domains } from "../App.ts"
export { ConfigProblem } from "../Config.ts"
export type { EnvironmentFacts } from "../Config.ts"

/** The service's `HttpApp`: every route of the contract, by its own path. */
export const app = HttpApiBuilder.httpApp

/**
 * What the app needs: the rooms, from a configuration document and the facts that a process would read from its environment. It wants
 * a database (`tollgate/database`), and recovers what an earlier run left there.
 */
export const layer = (facts: EnvironmentFacts, document: unknown) =>
  Layer.unwrapEffect(
    Effect.map(decodeFile(document, "the configuration"), (file) =>
      http.pipe(
        Layer.provide(
          Layer.effectDiscard(
            Effect.gen(function* () {
              yield* (yield* Gate).recover
              yield* (yield* Jobs).recover
              yield* (yield* Idempotency).recover
            })
          )
        ),
        Layer.provideMerge(Layer.mergeAll(HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer)),
        Layer.provide(Metrics.layer),
        Layer.provideMerge(domains),
        Layer.provide(Deployment.settings(facts, file))
      )
    )
  )
