/**
 * The express lane: the metered routes that must be fast run straight from node's request to node's response, past the router,
 * the middleware and the tracer of the platform. The same handlers stand in the `HttpApi` too, for every other server.
 */
import { Cause, Context, Duration, Effect } from "effect"
import type { Scope } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as FiberPool from "../kernel/FiberPool.ts"
import { isProblem } from "../kernel/Problem.ts"
import type { ProblemInstance } from "../kernel/Problem.ts"
import { traced, Tracing } from "../kernel/Tracing.ts"
import { Bytes } from "./Bytes.ts"
import { faultOf } from "./Fault.ts"
import { whenAnswerable } from "./Incoming.ts"
import * as Inbound from "./Inbound.ts"
import * as Reply from "./Reply.ts"
import * as RequestId from "./RequestId.ts"

/** Authenticates by the `Authorization` header, reads, answers; every failure is a problem with a status of its own. */
export type ExpressHandler = (inbound: Inbound.Inbound) => Effect.Effect<Reply.Reply, ProblemInstance<string>>

/** Handlers by method and path: `POST /v1/chat/completions`. */
export type ExpressRoutes = Readonly<Record<string, ExpressHandler>>

export class Express extends Context.Tag("tollgate/http/Express")<Express, ExpressRoutes>() {}

/** What happened to a request, for the metrics. */
export type Observe = (route: string, status: number, seconds: number) => void

/** Answers whether it took the request. */
export type Lane = (request: IncomingMessage, response: ServerResponse) => boolean

export const lane = (routes: ExpressRoutes, observe: Observe): Effect.Effect<Lane, never, Scope.Scope> =>
  Effect.map(Effect.all([drained, Tracing, Bytes]), ([fibers, tracing, bytes]) => (request, response) => {
    const url = request.url!
    const query = url.indexOf("?")
    const key = `${request.method} ${query === -1 ? url : url.slice(0, query)}`
    const handler = Object.hasOwn(routes, key) ? routes[key] : undefined
    if (handler === undefined) return false
    const id = RequestId.next()
    const began = performance.now()
    const answer = (reply: Reply.Reply) => {
      whenAnswerable(request, response, bytes, () => Reply.send(response, reply, id))
      observe(key, reply.status, (performance.now() - began) / 1000)
    }
    Inbound.afterShortBody(request, response, bytes, id, (inbound) => {
      const handled = handler(inbound)
      fibers.run(
        Effect.matchCauseEffect(tracing ? traced(key, inbound.header("traceparent"), handled) : handled, {
          onSuccess: (reply) => Effect.sync(() => answer(reply)),
          onFailure: (cause) =>
            Effect.map(Effect.annotateLogs(problemOf(cause), "request_id", id), (problem) =>
              answer(Reply.ofProblem(problem))
            )
        })
      )
    })
    return true
  })

/** How long a shutdown waits for calls whose client has left while their upstream is still read. */
const drainLimit = Duration.seconds(15)

const drained = Effect.tap(FiberPool.make, (fibers) => Effect.addFinalizer(() => fibers.quiet(drainLimit)))

/** The problem to answer with: one that a service died of counts as well, as in the frame. */
export const problemOf = (cause: Cause.Cause<unknown>): Effect.Effect<ProblemInstance<string>> => {
  const error = cause._tag === "Fail" ? cause.error : Cause.squash(cause)
  return isProblem(error) ? Effect.succeed(error) : faultOf(cause)
}
