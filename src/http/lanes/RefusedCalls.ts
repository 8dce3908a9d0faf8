/**
 * Logs calls that were rejected before the gate could log them, because of an invalid credential, an invalid body or an unknown model. Anyone can
 * cause log lines of this kind, so a process writes at most `linesMax` of them per second, followed by the number of omitted lines.
 */
import { Context, Effect, FiberRef, HashMap, Runtime } from "effect"
import { isLogged, refusedCall } from "../../books/gate/CallLog.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"
import { ClientDisconnected, InternalError } from "../contract/Problems.ts"

export const linesMax = 20

export interface RefusedCall {
  /** The contract's method and path. */
  readonly route: string
  /** The request's start, from `performance.now()`. */
  readonly began: number
  /** The caller, known once the credential is accepted. */
  readonly caller: Caller | undefined
  readonly problem: ProblemInstance<string>
}

/** Logs a rejected call unless the call already has a log line. */
export type LogRefused = (refused: RefusedCall) => Effect.Effect<void>

export class RefusedCalls extends Context.Reference<RefusedCalls>()("tollgate/http/RefusedCalls", {
  defaultValue: (): LogRefused => make()
}) {}

/** Returns whether the problem has its own log line or the client has disconnected. */
const isKnown = (problem: ProblemInstance<string>): boolean =>
  isLogged(problem) || problem instanceof InternalError || problem instanceof ClientDisconnected

export const make = (): LogRefused => {
  let written = 0
  let left_out = 0

  /** Ends the second that began with the first line. */
  const end = (runtime: Runtime.Runtime<never>) => (): void => {
    const count = left_out
    written = 0
    left_out = 0
    if (count > 0)
      Runtime.runFork(runtime)(
        Effect.annotateLogs(Effect.logInfo("refused calls were omitted from the log"), { count })
      )
  }

  const open = Effect.map(withoutRequest(Effect.runtime<never>()), (runtime) => {
    setTimeout(end(runtime), 1_000).unref()
  })

  return (refused) =>
    Effect.suspend(() => {
      if (isKnown(refused.problem)) return Effect.void
      if (written >= linesMax) {
        left_out++
        return Effect.void
      }
      return written++ === 0 ? Effect.zipRight(open, line(refused)) : line(refused)
    })
}

/** Removes the annotations of the current request. */
const withoutRequest = Effect.locally(FiberRef.currentLogAnnotations, HashMap.empty<string, unknown>())

const line = ({ began, caller, problem, route }: RefusedCall): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logInfo(refusedCall), {
    route,
    ...(caller !== undefined && { tenant: caller.tenant_id }),
    ...(caller?.application_id != null && { key: caller.application_id }),
    status: problem.status,
    code: problem.body.code ?? problem._tag,
    milliseconds: Math.round(performance.now() - began)
  })
