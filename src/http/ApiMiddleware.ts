/**
 * What all routes of the `HttpApi` share, as one middleware: a request id and cross-origin headers on every response, preflight
 * answers, bodies read up to a limit, and every failure as `{ error, code? }`: an unknown path, a wrong method, an unreadable
 * body, a value that does not fit, and faults of our own.
 */
import { HttpApi, HttpApiBuilder, HttpApiError, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import type { HttpApp } from "@effect/platform"
import { RouteNotFound as PlatformRouteNotFound } from "@effect/platform/HttpServerError"
import { Cause, Context, Effect } from "effect"
import { isProblem } from "../kernel/Problem.ts"
import type { ProblemInstance } from "../kernel/Problem.ts"
import { refusal } from "./Body.ts"
import { traced, Tracing } from "../kernel/Tracing.ts"
import { NoHead, ReadsOwnBody } from "./Annotations.ts"
import { Bytes } from "./Bytes.ts"
import type { Budget } from "./Bytes.ts"
import { crossOrigin, preflight } from "./CrossOrigin.ts"
import { faultOf } from "./Fault.ts"
import { whenAnswerable } from "./Incoming.ts"
import * as Inbound from "./Inbound.ts"
import { parseExact, written } from "./Json.ts"
import { MethodNotAllowed, RouteNotFound } from "./Problems.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { reasonOf } from "./Reason.ts"
import * as Reply from "./Reply.ts"
import * as RequestId from "./RequestId.ts"

/** The longest body of a route that does not read its own. */
export const bodyBytesMax = 1024 * 1024

/** Told of every request that is over: the path as the contract writes it, the status, how long it took. */
export class Observer extends Context.Reference<Observer>()("tollgate/http/Observer", {
  defaultValue: () => (_route: string, _status: number, _seconds: number) => {}
}) {}

interface Route {
  readonly method: string
  readonly path: string
  readonly pattern: RegExp
  readonly readsOwnBody: boolean
  readonly noHead: boolean
}

const routesOf = (api: HttpApi.HttpApi.AnyWithProps): ReadonlyArray<Route> => {
  const routes: Array<Route> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations }) => {
      routes.push({
        method: endpoint.method,
        path: endpoint.path,
        pattern: new RegExp(
          `^${endpoint.path
            .replace(/[.\\]/g, "\\$&")
            .replace(/:[A-Za-z_]+/g, "[^/]+")
            .replace(/\*/g, ".+")}/?$`
        ),
        readsOwnBody: Context.get(mergedAnnotations, ReadsOwnBody),
        noHead: Context.get(mergedAnnotations, NoHead)
      })
    }
  })
  return routes
}

export const ApiMiddleware = HttpApiBuilder.middleware(
  Effect.gen(function* () {
    const { api } = yield* HttpApi.Api
    const observe = yield* Observer
    const tracing = yield* Tracing
    const bytes = yield* Bytes
    const routes = routesOf(api as unknown as HttpApi.HttpApi.AnyWithProps)

    return (app: HttpApp.Default) =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const path = decoded(request.url.split("?", 1)[0]!)
        const here = routes.filter(({ pattern }) => pattern.test(path))
        const route = here.find(({ method }) => method === request.method)
        const request_id = RequestId.next()
        const began = performance.now()

        const answer =
          request.method === "OPTIONS"
            ? Effect.succeed(
                HttpServerResponse.empty({
                  status: 204,
                  headers: preflight(request.headers["access-control-request-headers"])
                })
              )
            : withBody(request, route).pipe(
                Effect.flatMap((readable) =>
                  request.method === "HEAD" && here.some(({ noHead }) => noHead)
                    ? new MethodNotAllowed()
                    : Effect.provideService(app, HttpServerRequest.HttpServerRequest, readable)
                ),
                Effect.catchAllCause((cause) =>
                  Effect.map(problemOf(cause, here.length > 0 && route === undefined), (problem) =>
                    allow(Reply.toResponse(Reply.ofProblem(problem)), problem, here)
                  )
                )
              )
        const named = route === undefined ? "unmatched" : `${route.method} ${route.path}`
        const logged = Effect.annotateLogs(answer, "request_id", request_id).pipe(
          Effect.provideService(Bytes, bytes),
          Effect.tap(answerable(request, bytes))
        )
        const response = yield* tracing ? traced(named, request.headers["traceparent"], logged) : logged
        observe(named, response.status, (performance.now() - began) / 1000)
        return HttpServerResponse.setHeaders(finished(response, request), {
          ...crossOrigin,
          "x-request-id": request_id
        })
      })
  })
)

/** With all digits of its numbers, and a refusal's own reason phrase. */
const finished = (
  response: HttpServerResponse.HttpServerResponse,
  request: HttpServerRequest.HttpServerRequest
): HttpServerResponse.HttpServerResponse => {
  const { body, headers, status } = response
  if (body._tag !== "Uint8Array" || !body.contentType.startsWith("application/json")) return response
  const bytes = written(body.body)
  const whole =
    bytes === body.body
      ? response
      : HttpServerResponse.uint8Array(bytes, { status, headers, contentType: body.contentType })
  const reason = reasonOf(status, bytes)
  if (reason === undefined) return whole
  // The platform's server for node leaves the phrase to node.
  const node = Inbound.nodeOf(request)
  if (node !== undefined) node.response.statusMessage = reason
  return HttpServerResponse.setStatus(whole, status, reason)
}

/** As the router reads it: escapes resolved, but for those of separators. */
const decoded = (path: string): string => {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

const allow = (
  response: HttpServerResponse.HttpServerResponse,
  problem: ProblemInstance<string>,
  here: ReadonlyArray<Route>
): HttpServerResponse.HttpServerResponse =>
  problem.status === 405
    ? HttpServerResponse.setHeader(response, "allow", [...new Set(here.map(({ method }) => method))].join(", "))
    : response

const problemOf = (cause: Cause.Cause<unknown>, wrongMethod: boolean): Effect.Effect<ProblemInstance<string>> => {
  const error = Cause.squash(cause)
  if (isProblem(error)) return Effect.succeed(error)
  if (error instanceof PlatformRouteNotFound) {
    return Effect.succeed(wrongMethod ? new MethodNotAllowed() : new RouteNotFound())
  }
  if (error instanceof HttpApiError.HttpApiDecodeError) {
    return Effect.succeed(refusal(error.issues))
  }
  return faultOf(cause)
}

const answerable = (request: HttpServerRequest.HttpServerRequest, bytes: Budget): Effect.Effect<void> =>
  Effect.suspend(() => {
    const node = Inbound.nodeOf(request)
    return node === undefined || node.request.complete
      ? Effect.void
      : Effect.async((resume) => whenAnswerable(node.request, node.response, bytes, () => resume(Effect.void)))
  })

/**
 * The request with a body that is read when it is asked for, once its sender is known, and that is refused in words when it is
 * too large or unreadable. (The platform cuts the connection of the one, and calls the other a defect.)
 */
const withBody = (
  request: HttpServerRequest.HttpServerRequest,
  route: Route | undefined
): Effect.Effect<HttpServerRequest.HttpServerRequest> => {
  if (route === undefined || route.readsOwnBody || request.method === "GET" || request.method === "HEAD") {
    return Effect.succeed(request)
  }
  const read = Effect.orDie(Effect.flatMap(Inbound.ofRequest(request), (inbound) => inbound.read(bodyBytesMax)))
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
                rule: "a JSON document"
              })
            )
          default:
            return Reflect.get(target, key, target)
        }
      }
    })
  })
}
