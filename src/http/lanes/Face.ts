/**
 * An isolated `HttpApi` application. The platform's builder collects the routes, middleware and router settings of all `HttpApi`s in a program in
 * three shared places. Here they are created for one application.
 */
import { Etag, HttpApiBuilder, HttpRouter } from "@effect/platform"
import type { HttpApi, HttpApp, HttpServerRequest } from "@effect/platform"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeHttpPlatform from "@effect/platform-node/NodeHttpPlatform"
import * as NodePath from "@effect/platform-node/NodePath"
import { Context, Effect, Layer } from "effect"
import * as FastLane from "./FastLane.ts"
import { RawHandlers } from "./Raw.ts"
import type { Authentication } from "./Authentication.ts"

export interface FaceContract {
  /** Serves every request. */
  readonly app: HttpApp.Default
  /** Serves the endpoints marked `Fast`, on servers with a lane. */
  readonly lane: FastLane.Lane
}

export class Face extends Context.Tag("tollgate/http/Face")<Face, FaceContract>() {
  /** Built from the contract with its handlers, its middleware and any other routes. */
  static readonly layer = <E, R>(api: Layer.Layer<HttpApi.Api | Authentication, E, R>) =>
    Layer.fresh(
      Layer.scoped(Face, Effect.all({ app, lane: FastLane.make })).pipe(
        Layer.provide(api),
        Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer, platform, RawHandlers.layer])
      )
    )
}

/** The services of `NodeHttpServer.layerContext`, except processes, terminals and workers, which requests do not use. */
const platform = Layer.mergeAll(NodeHttpPlatform.layer, Etag.layerWeak, NodeFileSystem.layer, NodePath.layer)

const app = Effect.gen(function* () {
  const app = yield* HttpRouter.withRouterConfig(HttpApiBuilder.httpApp, {
    // Paths are exact. An overlong id still reaches its route, which does not find it.
    caseSensitive: true,
    ignoreDuplicateSlashes: false,
    maxParamLength: Number.POSITIVE_INFINITY
  })
  const context = yield* Effect.context<HttpRouter.HttpRouter.DefaultServices>()
  // @effect-diagnostics-next-line returnEffectInGen:off -- made once, it answers every request
  return Effect.mapInputContext(app, (request: Context.Context<HttpServerRequest.HttpServerRequest>) =>
    Context.merge(context, request)
  )
})
