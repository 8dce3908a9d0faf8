/**
 * What describes the service to whoever calls it. To write the documents takes longer than to start without them, and the page brings
 * two megabytes of its own: they are made when somebody asks.
 */
import { HttpApiBuilder } from "@effect/platform"
import type { HttpApi } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { ServiceInfo } from "../kernel/ServiceInfo.ts"
import { CurrentSandbox } from "../sandbox/SandboxInfo.ts"

/** `/openapi.json` and `/docs`, for a service whose routes begin behind `prefix`. */
export const documents = (prefix: "" | `/${string}`) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const { public_url } = yield* ServiceInfo
      const sandbox = yield* CurrentSandbox
      const made = yield* Effect.cached(
        Effect.flatMap(
          Effect.promise(() => import("./Documents.ts")),
          ({ make }) => make(Api as unknown as HttpApi.HttpApi.AnyWithProps, serverOf(prefix, public_url), sandbox)
        )
      )
      const answer = Effect.orDie(Effect.flatten(made))
      yield* router.get("/openapi.json", answer)
      yield* router.get("/docs", answer)
    })
  )

/**
 * Where the routes begin, relative to the address that the document was read from; so it holds by whatever name the service is
 * reached. A proxy that takes a path away in front of it is known by the path of `public_url`.
 */
const serverOf = (prefix: string, public_url: string): string => {
  const { pathname } = new URL(public_url)
  return pathname === "/" ? prefix || "/" : pathname.replace(/\/$/, "")
}
