/**
 * Log lines about calls that were refused before the gate logged them: without a valid credential, with an invalid body, for an unknown
 * model. Strangers can cause them, so a process writes at most `linesMax` a second, and then the number of lines that it left out.
 */
import { Context, Effect, FiberRef, HashMap, Runtime } from "effect"
import { isLogged, refusedCall } from "../../books/gate/CallLog.ts"
import type { Caller } from "../../kernel/Caller.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"
import { ClientDisconnected, InternalError } from "../contract/Problems.ts"

/** Lines of a process in a second. */
export const linesMax = 20

export interface RefusedCall {
  /** The method and path as the contract writes them. */
  readonly route: string
  /** When the request began, in process time. */
  readonly began: number
  /** Known once the credential was accepted. */
  readonly caller: Caller | undefined
  readonly problem: ProblemInstance<string>
}

/** Writes the line of a refused call, unless it has one. */
export type LogRefused = (refused: RefusedCall) => Effect.Effect<void>

export class RefusedCalls extends Context.Reference<RefusedCalls>()("tollgate/http/RefusedCalls", {
  defaultValue: (): LogRefused => make()
}) {}

/** A problem with a line of its own, or of a client that has left. */
const isKnown = (problem: ProblemInstance<string>): boolean =>
  isLogged(problem) || problem instanceof InternalError || problem instanceof ClientDisconnected

export const make = (): LogRefused => {
  let written = 0
  let left_out = 0

  /** Ends the second that the first line began. */
  const end = (runtime: Runtime.Runtime<never>) => (): void => {
    const count = left_out
    written = 0
    left_out = 0
    if (count > 0)
      Runtime.runFork(runtime)(
        Effect.annotateLogs(Effect.logInfo("more calls were refused than are logged"), { count })
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

/** Without the annotations of the current request. */
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
