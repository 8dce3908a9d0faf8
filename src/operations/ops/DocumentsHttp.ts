/**
 * Serves `/openapi.json`, `/docs` and the guides. Builds each document on first request, because building takes longer than startup, and the
 * reference page alone is two megabytes.
 */
import { HttpApiBuilder, HttpRouter, HttpServerResponse } from "@effect/platform"
import type { HttpApi } from "@effect/platform"
import { Effect } from "effect"
import { RouteNotFound } from "../../http/contract/Problems.ts"
import { pathTo, ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { CurrentSandbox } from "../../kernel/SandboxInfo.ts"

/** Renders the guides. `docs` is the path of the reference, for links. */
export interface GuidePages {
  readonly listPage: (docs: string) => string
  readonly guidePage: (name: string, docs: string) => string | undefined
  /** Adds links to the guides to the reference page. */
  readonly withNavigation: (html: string, docs: string) => string
}

/** Creates the routes for a contract's documents and the guides. `prefix` is the path that the service is mounted at. */
export const documents = (
  api: HttpApi.HttpApi.AnyWithProps,
  prefix: "" | `/${string}`,
  loadGuides: () => Promise<GuidePages>
) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const { public_url } = yield* ServiceInfo
      const sandbox = yield* CurrentSandbox
      const base = pathTo(prefix, public_url)
      const docs = `${base === "/" ? "" : base}/docs`
      // Builds uninterruptibly, because a disconnecting client must not leave its interruption in the cache.
      const once = <A>(load: () => Promise<A>) =>
        Effect.map(Effect.cached(Effect.promise(load)), (loaded) => Effect.uninterruptible(loaded))
      const pages = yield* once(loadGuides)
      const made = yield* Effect.cached(
        Effect.flatMap(
          Effect.promise(() => import("./Documents.ts")),
          ({ make }) => make(api, base || "/", sandbox)
        )
      )
      const answer = Effect.orDie(Effect.flatten(Effect.uninterruptible(made)))
      yield* router.get("/openapi.json", answer)
      yield* router.get(
        "/docs",
        Effect.zipWith(answer, pages, (response, { withNavigation }) =>
          response.body._tag === "Uint8Array"
            ? HttpServerResponse.html(withNavigation(new TextDecoder().decode(response.body.body), docs))
            : response
        )
      )
      yield* router.get(
        "/docs/guides",
        Effect.map(pages, ({ listPage }) => HttpServerResponse.html(listPage(docs)))
      )
      yield* router.get(
        "/docs/guides/:name",
        Effect.gen(function* () {
          const { name = "" } = yield* HttpRouter.params
          const page = (yield* pages).guidePage(name, docs)
          return page === undefined ? yield* new RouteNotFound() : HttpServerResponse.html(page)
        })
      )
    })
  )
