/**
 * The express lane: the metered routes that must be fast run straight from node's request to node's response, past the router,
 * the middleware and the tracer of the platform. The same handlers stand in the `HttpApi` too, for every other server.
 */
import { Context, Effect, Exit, FiberSet } from "effect"
import type { Cause, Scope } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { isProblem } from "../kernel/Problem.ts"
import type { ProblemInstance } from "../kernel/Problem.ts"
import { crossOrigin } from "./CrossOrigin.ts"
import * as Inbound from "./Inbound.ts"
import { InternalError } from "./Problems.ts"
import * as Reply from "./Reply.ts"
import * as RequestId from "./RequestId.ts"

/** Authenticates by the `Authorization` header, reads, answers; every failure is a problem with a status of its own. */
export type ExpressHandler = (
  inbound: Inbound.Inbound
) => Effect.Effect<Reply.Reply, ProblemInstance<string>>

/** Handlers by method and path: `POST /v1/chat/completions`. */
export type ExpressRoutes = Readonly<Record<string, ExpressHandler>>

export class Express extends Context.Tag("tollgate/http/Express")<Express, ExpressRoutes>() {}

/** What happened to a request, for the metrics. */
export type Observe = (route: string, status: number, seconds: number) => void

/** Answers whether it took the request. */
export type Lane = (request: IncomingMessage, response: ServerResponse) => boolean

/** Requests still running when the scope closes are waited for by whoever closes it. */
export const lane = (routes: ExpressRoutes, observe: Observe): Effect.Effect<Lane, never, Scope.Scope> =>
  Effect.gen(function* () {
    // The runtime, and with it every request's fiber, is made with the tracer off.
    const run = yield* Effect.withTracerEnabled(FiberSet.makeRuntime<never>(), false)
    return (request, response) => {
      const key = `${request.method} ${request.url}`
      const handler = Object.hasOwn(routes, key) ? routes[key] : undefined
      if (handler === undefined) return false
      const id = RequestId.next()
      const began = performance.now()
      const headers = { ...crossOrigin, "x-request-id": id }
      const answered = (reply: Reply.Reply) => {
        Reply.send(response, { ...reply, headers: { ...headers, ...reply.headers } })
        observe(key, reply.status, (performance.now() - began) / 1000)
      }
      run(
        handler(Inbound.ofNode(request, response)).pipe(
          Effect.exit,
          Effect.flatMap((exit) =>
            Exit.isSuccess(exit)
              ? Effect.sync(() => answered(exit.value))
              : Effect.map(problemOf(exit.cause), (problem) => answered(Reply.ofProblem(problem)))
          ),
          Effect.annotateLogs("request_id", id)
        )
      )
      return true
    }
  })

/** The problem to answer with. What is none is a fault of ours: logged whole, shown as nothing but that. */
export const problemOf = (cause: Cause.Cause<unknown>): Effect.Effect<ProblemInstance<string>> => {
  const failure = cause._tag === "Fail" ? cause.error : undefined
  return isProblem(failure)
    ? Effect.succeed(failure)
    : Effect.as(Effect.logError("a request failed unexpectedly", cause), new InternalError())
}
