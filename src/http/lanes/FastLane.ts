/**
 * The fast lane. Endpoints marked `Fast` in their contract run directly from node's request to node's response, bypassing the platform's router,
 * middleware and tracer. The method, path, credential and handler come from the contract. On servers without the lane, the router serves the same
 * endpoints with the same bytes. The router also serves paths that do not match exactly (a trailing slash, escapes).
 */
import { HttpApi, HttpServer } from "@effect/platform"
import type { HttpApp, HttpMiddleware } from "@effect/platform"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Duration, Effect, Layer } from "effect"
import type { Cause, Scope } from "effect"
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http"
import type { ListenOptions } from "node:net"
import type { Caller } from "../../kernel/Caller.ts"
import { isDone } from "../../kernel/hot/Done.ts"
import * as FiberPool from "../../kernel/hot/FiberPool.ts"
import { traced, Tracing } from "../../kernel/Tracing.ts"
import { Fast, RefusalShape } from "../contract/Annotations.ts"
import type { Shape } from "../contract/Annotations.ts"
import { Metered } from "../contract/Documented.ts"
import { endpointsOf } from "../contract/Endpoints.ts"
import { Bytes } from "../transport/Bytes.ts"
import type { Budget } from "../transport/Bytes.ts"
import { problemOf } from "./Fault.ts"
import { isOver, whenOver } from "../transport/Closed.ts"
import { holdUntilServed } from "../transport/Held.ts"
import { whenAnswerable } from "../transport/Incoming.ts"
import * as Inbound from "../transport/Inbound.ts"
import { Observer } from "./Observer.ts"
import type { Observe } from "./Observer.ts"
import { nameOf, RawHandlers } from "./Raw.ts"
import type { RawHandler } from "./Raw.ts"
import { RefusedCalls } from "./RefusedCalls.ts"
import type { LogRefused } from "./RefusedCalls.ts"
import * as Reply from "../transport/Reply.ts"
import * as RequestId from "../transport/RequestId.ts"
import { Authentication } from "./Authentication.ts"
import type { Authenticate } from "./Authentication.ts"

/** The handler of each endpoint in the lane, by method and path: `POST /v1/chat/completions`. */
export type Lane = ReadonlyMap<string, RequestListener>

// ---- from the contract --------------------------------------------------------------------------------------------------------

/** How long a shutdown waits for upstream responses to calls whose clients have disconnected. */
const drainLimit = Duration.seconds(15)

/** Creates the lane of an `HttpApi` after its handlers are built. An endpoint marked `Fast` that cannot be in a lane is a defect. */
export const make: Effect.Effect<Lane, never, HttpApi.Api | Authentication | Scope.Scope> = Effect.gen(function* () {
  const { api } = yield* HttpApi.Api
  const handlers = yield* RawHandlers
  const authentication = yield* Authentication
  const facts: Facts = {
    fibers: yield* FiberPool.make,
    tracing: yield* Tracing,
    bytes: yield* Bytes,
    observe: yield* Observer,
    logRefused: yield* RefusedCalls
  }
  yield* Effect.addFinalizer(() => facts.fibers.quiet(drainLimit))

  const lane = new Map<string, RequestListener>()
  for (const { annotations, endpoint, group, middleware } of endpointsOf(
    api as unknown as HttpApi.HttpApi.AnyWithProps
  )) {
    if (!Context.get(annotations, Fast)) continue
    const name = nameOf(group.identifier, endpoint.name)
    const handler = handlers?.get(name)
    const [way, ...others] = middleware
    const authenticate = way === undefined ? undefined : authentication.get(way.key)
    if (handler === undefined) throw new Error(`${name} is marked Fast but has no raw handler`)
    if (authenticate === undefined || others.length > 0) {
      throw new Error(
        `${name} is marked Fast but its middleware is not a single credential that can be checked from headers alone`
      )
    }
    if (/[:*]/.test(endpoint.path)) throw new Error(`${name} is marked Fast but its path has parameters`)
    const route = `${endpoint.method} ${endpoint.path}`
    const shape = Context.get(annotations, RefusalShape)
    const isMetered = Context.get(annotations, Metered) !== undefined
    const served: Route = { name: route, handler, authenticate, shape, isMetered, facts }
    lane.set(route, (request, response) => serve(served, request, response))
  }
  return lane
})

interface Facts {
  readonly fibers: FiberPool.FiberPool
  readonly tracing: boolean
  readonly bytes: Budget
  readonly observe: Observe
  readonly logRefused: LogRefused
}

interface Route {
  readonly name: string
  readonly handler: RawHandler<unknown>
  readonly authenticate: Authenticate
  readonly shape: Shape | undefined
  readonly isMetered: boolean
  readonly facts: Facts
}

// ---- a request ------------------------------------------------------------------------------------------------------------------

const serve = (route: Route, request: IncomingMessage, response: ServerResponse): void => {
  const call = new Call(route, request, response)
  Inbound.afterShortBody(request, response, route.facts.bytes, call.id, call.begin)
}

/** A request in the lane. A class is cheaper than closures per call. */
class Call {
  readonly id = RequestId.next()
  private readonly began = performance.now()
  private readonly route: Route
  private readonly request: IncomingMessage
  private readonly response: ServerResponse
  private inbound: Inbound.Inbound | undefined
  private caller: Caller | undefined
  private running: FiberPool.Interruptible | undefined
  private answered = false

  constructor(route: Route, request: IncomingMessage, response: ServerResponse) {
    this.route = route
    this.request = request
    this.response = response
  }

  readonly begin = (inbound: Inbound.Inbound): void => {
    const { authenticate, facts, name } = this.route
    this.inbound = inbound
    // Suspended, so that a thrown error also gets a response.
    const handled = Effect.suspend(() => {
      const caller = authenticate(inbound)
      return isDone(caller) ? this.handle(caller.value) : Effect.flatMap(caller, this.handle)
    })
    const traceable = facts.tracing ? traced(name, inbound.header("traceparent"), handled) : handled
    const running = facts.fibers.run(Effect.matchCauseEffect(Effect.interruptible(traceable), this))
    if (this.answered) return
    this.running = running
    if (isOver(this.response)) this.leave()
    else whenOver(this.response, this.leave)
  }

  private readonly handle = (caller: Caller): Effect.Effect<Reply.Reply, unknown> => {
    this.caller = caller
    this.inbound!.heldBy(caller.account_id)
    return this.route.handler(caller, this.inbound!)
  }

  /** Interrupts the request if it is not complete. Called once the client has disconnected or received its response. */
  private readonly leave = (): void => {
    if (!this.answered) this.running?.interrupt()
  }

  readonly onSuccess = (reply: Reply.Reply): Effect.Effect<void> => {
    this.answer(reply)
    return Effect.void
  }

  readonly onFailure = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
    Effect.flatMap(problemOf(cause, isOver(this.response)), (problem) => {
      const { began, caller, id } = this
      const { facts, isMetered, name: route, shape } = this.route
      this.answer(Reply.ofProblem(problem, id, shape))
      return isMetered ? facts.logRefused({ route, began, caller, problem }) : Effect.void
    }).pipe(Effect.annotateLogs("request_id", this.id))

  private answer(reply: Reply.Reply): void {
    const { id, request, response } = this
    const { bytes, observe } = this.route.facts
    this.answered = true
    whenAnswerable(request, response, bytes, () => Reply.send(response, reply, id))
    observe(this.route.name, reply.status, (performance.now() - this.began) / 1000)
  }
}

// ---- on a server ----------------------------------------------------------------------------------------------------------------

/** Serves the lane's requests and passes all others to `otherwise`. */
export const before =
  (lane: Lane, otherwise: RequestListener): RequestListener =>
  (request, response) => {
    const url = request.url!
    const query = url.indexOf("?")
    const listener = lane.get(`${request.method} ${query === -1 ? url : url.slice(0, query)}`) ?? otherwise
    listener(request, response)
  }

/** A server's lanes, one per service. Without `layerServer`, `add` does nothing. */
export class Lanes extends Context.Reference<Lanes>()("tollgate/http/Lanes", {
  defaultValue: (): LanesContract => ({ add: () => Effect.void })
}) {}

export interface LanesContract {
  /** Serves a lane below a prefix until the scope closes. */
  readonly add: (prefix: string, lane: Lane) => Effect.Effect<void, never, Scope.Scope>
}

/**
 * Provides the platform's `HttpServer` on node, like `NodeHttpServer.layer`, and puts the lanes of all mounted services in front of it. Requests in a
 * lane bypass the middleware of the host's application (`HttpApiBuilder.serve(middleware)`). The server listens before the application is built.
 * Requests that arrive in the meantime are held for up to ten seconds, then rejected with 503.
 */
export const layerServer = (evaluate: () => Server, options: ListenOptions) =>
  Layer.scopedContext(
    Effect.gen(function* () {
      const all = new Map<string, RequestListener>()
      let server!: Server
      let release: () => void = () => {}
      const platform = yield* NodeHttpServer.make(() => {
        server = evaluate()
        // If the host has its own listener on the server, that listener responds.
        if (server.listenerCount("request") === 0) release = holdUntilServed(server)
        return server
      }, options)
      const serve = (app: HttpApp.Default<unknown>, middleware?: HttpMiddleware.HttpMiddleware) =>
        platform.serve(app, middleware!).pipe(Effect.zipRight(placed(server, all)), Effect.tap(Effect.sync(release)))
      return Context.make(HttpServer.HttpServer, HttpServer.make({ address: platform.address, serve })).pipe(
        Context.add(Lanes, { add: (prefix, lane) => added(all, prefix, lane) })
      )
    })
  ).pipe(Layer.merge(NodeHttpServer.layerContext))

/** Puts the lanes in front of the newest listener. */
const placed = (server: Server, lanes: Lane): Effect.Effect<void, never, Scope.Scope> =>
  Effect.suspend(() => {
    const last = server.listeners("request").at(-1) as RequestListener
    const listener = before(lanes, last)
    server.off("request", last).on("request", listener)
    return Effect.addFinalizer(() => Effect.sync(() => server.off("request", listener)))
  })

const added = (
  lanes: Map<string, RequestListener>,
  prefix: string,
  lane: Lane
): Effect.Effect<void, never, Scope.Scope> => {
  const beneath = [...lane].map(([key, listener]) => [key.replace(" ", ` ${prefix}`), listener] as const)
  return Effect.acquireRelease(
    Effect.sync(() => {
      for (const [key, listener] of beneath) lanes.set(key, listener)
    }),
    () =>
      Effect.sync(() => {
        for (const [key] of beneath) lanes.delete(key)
      })
  )
}
