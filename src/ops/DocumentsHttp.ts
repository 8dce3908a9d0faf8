/**
 * What describes the service to whoever calls it. To write the documents takes longer than to start without them, and the page brings
 * two megabytes of its own: they are made when somebody asks.
 */
import { HttpApiBuilder } from "@effect/platform"
import type { HttpApi } from "@effect/platform"
import { Effect } from "effect"
import { pathTo, ServiceInfo } from "../kernel/ServiceInfo.ts"
import { CurrentSandbox } from "../sandbox/SandboxInfo.ts"

/** `/openapi.json` and `/docs` of a contract, for a service whose routes begin with `prefix`. */
export const documents = (api: HttpApi.HttpApi.AnyWithProps, prefix: "" | `/${string}`) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const { public_url } = yield* ServiceInfo
      const sandbox = yield* CurrentSandbox
      const made = yield* Effect.cached(
        Effect.flatMap(
          Effect.promise(() => import("./Documents.ts")),
          ({ make }) => make(api, pathTo(prefix, public_url) || "/", sandbox)
        )
      )
      // A client that leaves while they are made must not be what everybody gets from then on.
      const answer = Effect.orDie(Effect.flatten(Effect.uninterruptible(made)))
      yield* router.get("/openapi.json", answer)
      yield* router.get("/docs", answer)
    })
  )
