/**
 * The middleware for all routes of the `HttpApi`. It adds a request id and cross-origin headers to every response, responds to preflights and limits
 * bodies. It converts every failure to a refusal in the endpoint's format: an unknown path, a wrong method, an unreadable body, an invalid value or
 * an internal error.
 */
import { HttpApi, HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import type { HttpApp } from "@effect/platform"
import { clientAbortFiberId } from "@effect/platform/HttpServerError"
import { Array as Arr, Context, Effect } from "effect"
import { Readable } from "node:stream"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { traced, Tracing } from "../../kernel/Tracing.ts"
import {
  bodyBytesMax,
  BodyBytesMax,
  NoHead,
  openBodyBytesMax,
  ReadsOwnBody,
  RefusalShape,
  RefusesWebSocket
} from "../contract/Annotations.ts"
import type { Shape } from "../contract/Annotations.ts"
import { Bytes } from "../transport/Bytes.ts"
import type { Budgets } from "../transport/Bytes.ts"
import { crossOrigin, preflight } from "../transport/CrossOrigin.ts"
import { Metered } from "../contract/Documented.ts"
import { endpointsOf } from "../contract/Endpoints.ts"
import { callerOf } from "./Caller.ts"
import { problemOf } from "./Fault.ts"
import { whenOver } from "../transport/Closed.ts"
import { whenAnswerable } from "../transport/Incoming.ts"
import * as Inbound from "../transport/Inbound.ts"
import { parseExact, written } from "../transport/Json.ts"
import { Observer } from "./Observer.ts"
import type { Observe } from "./Observer.ts"
import { RefusedCalls } from "./RefusedCalls.ts"
import type { LogRefused } from "./RefusedCalls.ts"
import { MethodNotAllowed, WebSocketNotServed } from "../contract/Problems.ts"
import { RateLimitsConfig, senderOf } from "../transport/RateLimits.ts"
import type { RateLimitSettings } from "../transport/RateLimits.ts"
import { reasonOf } from "../transport/Reason.ts"
import * as Reply from "../transport/Reply.ts"
import * as RequestId from "../transport/RequestId.ts"

// ---- the routes of the contract -------------------------------------------------------------------------------------------

interface Route {
  readonly method: string
  readonly path: string
  readonly pattern: RegExp
  /** The maximum body size; `undefined` if the handler reads the body. */
  readonly body_bytes_max: number | undefined
  /** Whether the route's bodies count against the separate budget for open routes. */
  readonly open: boolean
  readonly noHead: boolean
  readonly refusesWebSocket: boolean
  readonly isMetered: boolean
  readonly shape: Shape | undefined
}

const routesIn = (api: HttpApi.HttpApi.AnyWithProps): ReadonlyArray<Route> =>
  endpointsOf(api).map(({ annotations, endpoint, middleware }) => {
    const declaredMax = Context.get(annotations, BodyBytesMax)
    const open = middleware.size === 0
    return {
      method: endpoint.method,
      path: endpoint.path,
      pattern: new RegExp(
        `^${endpoint.path
          .replace(/[.\\]/g, "\\$&")
          .replace(/:[A-Za-z_]+/g, "[^/]+")
          .replace(/\*/g, ".+")}/?$`
      ),
      body_bytes_max: Context.get(annotations, ReadsOwnBody)
        ? undefined
        : (declaredMax ?? (open ? openBodyBytesMax : bodyBytesMax)),
      open,
      noHead: Context.get(annotations, NoHead),
      refusesWebSocket: Context.get(annotations, RefusesWebSocket),
      isMetered: Context.get(annotations, Metered) !== undefined,
      shape: Context.get(annotations, RefusalShape)
    }
  })

/** Returns the first two segments of a path, such as `/v1/runs`. */
const startOf = (path: string): string => path.replace(/\/$/, "").split("/", 3).join("/")

/** Returns a function that finds the routes of a path. It tests only the patterns with the same first two segments. */
const routeFinder = (routes: ReadonlyArray<Route>): ((path: string) => ReadonlyArray<Route>) => {
  const [literal, variable] = Arr.partition(routes, ({ path }) => /[:*]/.test(startOf(path)))
  const groups = new Map(Object.entries(Arr.groupBy(literal, ({ path }) => startOf(path))))
  return (path) => [...(groups.get(startOf(path)) ?? []), ...variable].filter(({ pattern }) => pattern.test(path))
}

/** Returns the path as the router reads it: the part before `?`, `;` or `#`, with all escapes decoded except those of separators. */
const pathOf = (url: string): string => {
  const path = url.split(/[?;#]/, 1)[0]!
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

// ---- the middleware ---------------------------------------------------------------------------------------------------------

interface Facts {
  readonly routesOf: (path: string) => ReadonlyArray<Route>
  readonly observe: Observe
  readonly logRefused: LogRefused
  readonly tracing: boolean
  readonly bytes: Budgets
  readonly limits: RateLimitSettings
}

export const ApiMiddleware = HttpApiBuilder.middleware(
  Effect.gen(function* () {
    const { api } = yield* HttpApi.Api
    const facts: Facts = {
      routesOf: routeFinder(routesIn(api as unknown as HttpApi.HttpApi.AnyWithProps)),
      observe: yield* Observer,
      logRefused: yield* RefusedCalls,
      tracing: yield* Tracing,
      bytes: yield* Bytes,
      limits: yield* RateLimitsConfig
    }
    return (app: HttpApp.Default) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
        Effect.zipRight(interruptedWhenGone(request), served(facts, app)(request))
      )
  })
)

const served = ({ bytes, limits, logRefused, observe, routesOf, tracing }: Facts, app: HttpApp.Default) =>
  Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    const path = pathOf(request.url)
    const samePath = routesOf(path)
    const route = samePath.find(({ method }) => method === request.method)
    const name = route === undefined ? "unmatched" : `${route.method} ${route.path}`
    const request_id = RequestId.next()
    const began = performance.now()

    const answer = Effect.suspend(
      (): Effect.Effect<HttpServerResponse.HttpServerResponse, MethodNotAllowed | WebSocketNotServed> => {
        if (request.method === "OPTIONS") return preflighted(request)
        if (request.method === "HEAD" && samePath.some(({ noHead }) => noHead)) {
          return new MethodNotAllowed({ allow: methodsOf(samePath) })
        }
        if (isWebSocketUpgrade(request) && samePath.some(({ refusesWebSocket }) => refusesWebSocket))
          return new WebSocketNotServed()
        return Effect.flatMap(withBody(request, route, limits), (readable) =>
          Effect.provideService(app, HttpServerRequest.HttpServerRequest, readable)
        )
      }
    ).pipe(
      Effect.catchAllCause((cause) =>
        // The path exists, but not with this method. If the route matched, the failure is the route's own.
        Effect.flatMap(
          problemOf(cause, Inbound.isGone(request), route === undefined ? methodsOf(samePath) : []),
          (problem) =>
            Effect.as(
              route?.isMetered === true
                ? logRefused({ route: name, began, caller: callerOf(request), problem })
                : Effect.void,
              Reply.toResponse(Reply.ofProblem(problem, request_id, (route ?? samePath[0])?.shape))
            )
        )
      ),
      Effect.annotateLogs("request_id", request_id),
      Effect.provideService(Bytes, bytes),
      Effect.tap(answerable(request, bytes))
    )
    const response = yield* tracing ? traced(name, request.headers["traceparent"], answer) : answer
    observe(name, response.status, (performance.now() - began) / 1000)
    return Inbound.isGone(request) ? emptied(response) : whole(response, request, request_id)
  })

/**
 * Interrupts a pipelined request when its client disconnects. The platform's server does this only for other requests, because the response to a
 * pipelined request has no socket yet.
 */
const interruptedWhenGone = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    const node = Inbound.nodeOf(request)
    if (node?.response.socket === null) whenOver(node.response, () => fiber.unsafeInterruptAsFork(clientAbortFiberId))
    return Effect.void
  })

const methodsOf = (routes: ReadonlyArray<Route>): ReadonlyArray<string> => [
  ...new Set(routes.map(({ method }) => method))
]

/** Returns whether the request tries to open a WebSocket. HTTP defines the handshake only for GET. */
const isWebSocketUpgrade = ({ headers, method }: HttpServerRequest.HttpServerRequest): boolean =>
  method === "GET" && /(?:^|,)\s*websocket\s*(?:,|$)/i.test(headers["upgrade"] ?? "")

const preflighted = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.succeed(
    HttpServerResponse.empty({ status: 204, headers: preflight(request.headers["access-control-request-headers"]) })
  )

// ---- responses ----------------------------------------------------------------------------------------------------------------

/** Completes a response with the exact digits of numbers, the reason phrase of a refusal, and the common headers. */
const whole = (
  response: HttpServerResponse.HttpServerResponse,
  request: HttpServerRequest.HttpServerRequest,
  request_id: string
): HttpServerResponse.HttpServerResponse => {
  const exact = withDigits(response)
  const { body, status, statusText } = exact
  const reason =
    statusText ?? (body._tag === "Uint8Array" && isJson(body.contentType) ? reasonOf(status, body.body) : undefined)
  // Set the phrase on node's response, because the platform's server does not pass it on.
  const node = Inbound.nodeOf(request)
  if (reason !== undefined && node !== undefined) node.response.statusMessage = reason
  return HttpServerResponse.setHeaders(
    reason === undefined ? exact : HttpServerResponse.setStatus(exact, status, reason),
    { ...crossOrigin, "x-request-id": request_id }
  )
}

const isJson = (type: string): boolean => type.startsWith("application/json")

const withDigits = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
  const { body, headers, status } = response
  if (body._tag !== "Uint8Array" || !isJson(body.contentType)) return response
  const bytes = written(body.body)
  return bytes === body.body
    ? response
    : HttpServerResponse.uint8Array(bytes, { status, headers, contentType: body.contentType })
}

/** Empties the response for a disconnected client, because the platform would wait for the client to read the bytes. */
const emptied = ({ body, status }: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
  if (body._tag === "Raw" && body.body instanceof Readable) body.body.destroy()
  return HttpServerResponse.empty({ status })
}

const answerable = (request: HttpServerRequest.HttpServerRequest, bytes: Budgets): Effect.Effect<void> =>
  Effect.suspend(() => {
    const node = Inbound.nodeOf(request)
    return node === undefined || node.request.complete
      ? Effect.void
      : Effect.async((resume) => whenAnswerable(node.request, node.response, bytes, () => resume(Effect.void)))
  })

// ---- bodies -------------------------------------------------------------------------------------------------------------------

/**
 * Wraps the request so that its body is read only when it is needed, after its sender is known. A body that is too large or unreadable is rejected
 * with a problem; the platform would close the connection or report a defect.
 */
const withBody = (
  request: HttpServerRequest.HttpServerRequest,
  route: Route | undefined,
  limits: RateLimitSettings
): Effect.Effect<HttpServerRequest.HttpServerRequest> => {
  // A path that does not match a route exactly gets the lowest limit.
  const limit = route === undefined ? openBodyBytesMax : route.body_bytes_max
  if (limit === undefined || request.method === "GET" || request.method === "HEAD") return Effect.succeed(request)
  const read = Effect.orDie(
    Effect.flatMap(Inbound.ofRequest(request, route?.open ?? true), (inbound) => {
      inbound.heldBy(senderOf(request, limits))
      return inbound.read(limit)
    })
  )
  return Effect.map(Effect.cached(read), (bytes) => {
    const text = Effect.map(bytes, (bytes) => bytes.toString("utf8"))
    return new Proxy(request, {
      get: (target, key) => {
        switch (key) {
          case "text":
            return text
          case "json":
            return Effect.flatMap(bytes, (bytes) => Effect.orDie(parseExact(bytes)))
          case "urlParamsBody":
            return Effect.map(text, (text) => [...new URLSearchParams(text)])
          case "arrayBuffer":
            return Effect.map(bytes, ({ buffer, byteLength, byteOffset }) =>
              buffer.slice(byteOffset, byteOffset + byteLength)
            )
          case "multipart":
            return Effect.die(
              new InvalidRequest({
                message: "the request body is a form where JSON is expected",
                field: "",
                rule: "must be a JSON document"
              })
            )
          default:
            return Reflect.get(target, key, target)
        }
      }
    })
  })
}
