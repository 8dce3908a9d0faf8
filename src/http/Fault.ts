/** What a request is answered when handling it broke in a way that no route foresaw. */
import { Cause, Effect } from "effect"
import type { ProblemInstance } from "../kernel/Problem.ts"
import { InternalError, Unavailable } from "./Problems.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"

/**
 * A fault of ours: logged whole, shown as nothing but that. Only a value that is nested too deeply to be walked is the sender's:
 * what walks a value here recurses as deep as what was sent.
 */
export const faultOf = (cause: Cause.Cause<unknown>): Effect.Effect<ProblemInstance<string>> => {
  // The client has left, or the process is about to end.
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed(new Unavailable())
  const error = Cause.squash(cause)
  return error instanceof RangeError && error.message.includes("call stack")
    ? Effect.succeed(
        new InvalidRequest({
          message: "the request is nested too deeply",
          field: "",
          rule: "nested less deeply"
        })
      )
    : Effect.as(Effect.logError("a request failed unexpectedly", cause), new InternalError())
}
