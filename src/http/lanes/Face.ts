/**
 * An isolated `HttpApi` application. The platform's builder shares one collection of routes, one of middleware and one of router settings among all
 * `HttpApi`s in a program. With `Face`, each application gets its own.
 */
import { Etag, FileSystem, HttpApiBuilder, HttpPlatform, HttpRouter, Path } from "@effect/platform"
import type { HttpApi, HttpApp, HttpServerRequest } from "@effect/platform"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeHttpPlatform from "@effect/platform-node/NodeHttpPlatform"
import * as NodePath from "@effect/platform-node/NodePath"
import { Context, Effect, Layer } from "effect"
import * as FastLane from "./FastLane.ts"
import { RawHandlers } from "./Raw.ts"
import type { Authentication } from "./Authentication.ts"

export interface FaceContract {
  readonly app: HttpApp.Default
  /** Serves the endpoints marked `Fast`, on servers with a lane. */
  readonly lane: FastLane.Lane
}

export class Face extends Context.Tag("tollgate/http/Face")<Face, FaceContract>() {
  /** Builds the application from the contract, its handlers and middleware, and any other routes. */
  static readonly layer = <E, R>(api: Layer.Layer<HttpApi.Api | Authentication, E, R>) =>
    Layer.fresh(
      Layer.scoped(Face, Effect.all({ app, lane: FastLane.make })).pipe(
        Layer.provide(api),
        Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer, platform, RawHandlers.layer])
      )
    )
}

/** The services of `NodeHttpServer.layerContext`, except processes, terminals and workers. Requests do not use them. */
const platform = Layer.mergeAll(NodeHttpPlatform.layer, Etag.layerWeak, NodeFileSystem.layer, NodePath.layer)

const app = Effect.gen(function* () {
  const app = yield* HttpRouter.withRouterConfig(HttpApiBuilder.httpApp, {
    // Paths are exact. A request with an overlong id still reaches its route, where no id matches.
    caseSensitive: true,
    ignoreDuplicateSlashes: false,
    maxParamLength: Number.POSITIVE_INFINITY
  })
  // The services that were needed to build the routes stay out, because the context is copied several times per request.
  const services = yield* Effect.context<HttpRouter.HttpRouter.DefaultServices>()
  const context = Context.pick(HttpPlatform.HttpPlatform, Etag.Generator, FileSystem.FileSystem, Path.Path)(services)
  // @effect-diagnostics-next-line returnEffectInGen:off -- built once, it serves every request
  return Effect.mapInputContext(app, (request: Context.Context<HttpServerRequest.HttpServerRequest>) =>
    Context.merge(context, request)
  )
})
