/**
 * `tollgate/http`: the complete service, mounted at a path of a host's own server.
 *
 *     HttpApiBuilder.serve().pipe(
 *       Layer.provide([HostRoutes, Tollgate.mounted("/ai")]),
 *       Layer.provide(Tollgate.layer(facts, configuration)),
 *       Layer.provide(Database.layer("tollgate.db")),
 *       Layer.provide(Tollgate.layerServer(createServer, { port: 3000 }))
 *     )
 *
 * `layerServer` is the platform's `NodeHttpServer.layer` with the fast lane in front of it. It listens before the service is built. Until then,
 * requests wait for up to ten seconds and then fail with 503. On any other server of the platform, the router serves the same routes, but requests
 * that arrive before the service is built never get a response.
 */
import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import type { HttpApp } from "@effect/platform"
import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { domains, face, jobs, observers } from "../App.ts"
import * as Config from "../Config.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as Secret from "../Secret.ts"
import { Face } from "../../http/lanes/Face.ts"
import { Lanes } from "../../http/lanes/FastLane.ts"
import { Loops } from "../../operations/ops/Loops.ts"
import { Metrics } from "../../operations/ops/Metrics.ts"
import { Readiness } from "../../operations/ops/Readiness.ts"
import "./contracts.ts"

export { Api } from "../Api.ts"
export { domains, jobs } from "../App.ts"
export { layerServer } from "../../http/lanes/FastLane.ts"
export { ConfigProblem } from "../../kernel/Setting.ts"
export type { EnvironmentFacts } from "../Environment.ts"

/** A path on the host's server, such as `/ai`. */
export type Prefix = `/${string}`

/** The service, ready to be mounted. */
export class Service extends Context.Tag("tollgate/http/Service")<
  Service,
  { readonly beneath: (prefix: Prefix) => Effect.Effect<HttpApp.Default, never, Scope.Scope> }
>() {}

/**
 * Returns the service as an application on the platform, for a host without an `HttpApi`: `HttpRouter.mountApp("/ai", yield* app("/ai"))`. It accepts
 * paths with and without the prefix, so the host's router can strip the prefix.
 */
export const app = (prefix: Prefix): Effect.Effect<HttpApp.Default, never, Service | Scope.Scope> =>
  Effect.flatMap(Service, (service) => service.beneath(prefix))

/**
 * Provides the service under a prefix of a host's `HttpApi`, as a layer for `HttpApiBuilder.serve`. Under that prefix, the service handles routes,
 * errors, `/openapi.json` and `/docs`. The host handles all other paths with its own routes, documents and `HttpApi` middleware. Middleware for the
 * host's whole server (`HttpApiBuilder.serve(middleware)`) applies to both, except to requests in `layerServer`'s fast lane.
 */
export const mounted = (prefix: Prefix) =>
  HttpApiBuilder.middleware(
    Effect.map(
      app(prefix),
      (service) =>
        (host: HttpApp.Default): HttpApp.Default =>
          Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) => (isBeneath(prefix, url) ? service : host))
    )
  )

const isBeneath = (prefix: Prefix, url: string): boolean =>
  url.startsWith(prefix) && (url.length === prefix.length || "/?".includes(url[prefix.length]!))

type Rooms = Layer.Layer.Context<ReturnType<typeof face>>

const beneath =
  (rooms: Context.Context<Rooms>): Context.Tag.Service<Service>["beneath"] =>
  (prefix) =>
    Effect.gen(function* () {
      const { app: service, lane } = Context.get(yield* Effect.provide(Layer.build(face(prefix)), rooms), Face)
      yield* (yield* Lanes).add(prefix, lane)
      // @effect-diagnostics-next-line returnEffectInGen:off -- created once, it serves every request
      return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
        request.url === request.originalUrl && isBeneath(prefix, request.url)
          ? Effect.provideService(
              service,
              HttpServerRequest.HttpServerRequest,
              request.modify({ url: request.url.slice(prefix.length) || "/" })
            )
          : service
      )
    })

/**
 * Provides the service with all its rooms and background loops, from a configuration document and the values of the environment. Requires a database
 * (`tollgate/database`). `public_url` in the document must include the prefix: `https://example.com/ai`.
 */
export const layer = (facts: EnvironmentFacts, document: unknown) =>
  Layer.unwrapEffect(
    Effect.map(Config.decodeFile(document, "the configuration"), (file) =>
      Layer.effect(
        Service,
        Effect.map(Effect.context<Rooms>(), (rooms) => ({ beneath: beneath(rooms) }))
      ).pipe(
        Layer.provide(jobs),
        Layer.provideMerge(domains),
        Layer.provide([Config.layer(facts, file), Secret.layer(facts)]),
        Layer.provide(observers),
        Layer.provide(Metrics.layer),
        Layer.provide(Readiness.layer),
        Layer.provide(Loops.layer)
      )
    )
  )
