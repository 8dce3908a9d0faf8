/**
 * The express lane: the metered routes that must be fast run straight from node's request to node's response, past the router,
 * the middleware and the tracer of the platform. The same handlers stand in the `HttpApi` too, for every other server.
 */
import { Context, Effect, Runtime } from "effect"
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
export type ExpressHandler = (inbound: Inbound.Inbound) => Effect.Effect<Reply.Reply, ProblemInstance<string>>

/** Handlers by method and path: `POST /v1/chat/completions`. */
export type ExpressRoutes = Readonly<Record<string, ExpressHandler>>

export class Express extends Context.Tag("tollgate/http/Express")<Express, ExpressRoutes>() {}

/** What happened to a request, for the metrics. */
export type Observe = (route: string, status: number, seconds: number) => void

/** Answers whether it took the request. */
export type Lane = (request: IncomingMessage, response: ServerResponse) => boolean

/** How many fibers without a request are kept for the next ones. */
const idleMax = 256

/**
 * Each request runs on a fiber that outlives it. Making one is cheap, but the runtime keeps its root fibers in a `Set`, and the
 * tables that a busy set leaves behind hold on to whole requests until the next full collection: a seventh of all time.
 */
export const lane = (routes: ExpressRoutes, observe: Observe): Effect.Effect<Lane, never, Scope.Scope> =>
  Effect.gen(function* () {
    interface Job {
      readonly run: Effect.Effect<void>
    }
    const idle: Array<(job: Effect.Effect<Job>) => void> = []
    const wait = Effect.async<Job>((resume) => {
      idle.push(resume)
    })
    const work = (job: Job): Effect.Effect<void> =>
      Effect.flatMap(job.run, () => (idle.length < idleMax ? Effect.flatMap(wait, work) : Effect.void))
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const resume of idle.splice(0)) resume(Effect.interrupt)
      })
    )
    // The runtime, and with it every request, is made with the tracer off.
    const runtime = yield* Effect.withTracerEnabled(Effect.runtime<never>(), false)
    const fork = Runtime.runFork(runtime)
    const start = (job: Job) => {
      const resume = idle.pop()
      if (resume === undefined) fork(work(job))
      else resume(Effect.succeed(job))
    }

    return (request, response) => {
      const key = `${request.method} ${request.url}`
      const handler = Object.hasOwn(routes, key) ? routes[key] : undefined
      if (handler === undefined) return false
      const id = RequestId.next()
      const began = performance.now()
      const answer = (reply: Reply.Reply) => {
        Reply.send(response, reply, { ...crossOrigin, "x-request-id": id })
        observe(key, reply.status, (performance.now() - began) / 1000)
      }
      const run = Effect.matchCauseEffect(handler(Inbound.ofNode(request, response)), {
        onSuccess: (reply) => Effect.sync(() => answer(reply)),
        onFailure: (cause) => Effect.map(problemOf(cause), (problem) => answer(Reply.ofProblem(problem)))
      })
      start({ run: Effect.annotateLogs(run, "request_id", id) })
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
