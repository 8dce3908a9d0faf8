/** Decides the response to a failed request, in either lane. */
import { HttpApiError } from "@effect/platform"
import { RouteNotFound as PlatformRouteNotFound } from "@effect/platform/HttpServerError"
import { Cause, Effect } from "effect"
import { SqlError } from "@effect/sql/SqlError"
import { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { isStorageFault } from "../../books/ledger/write/DatabaseFault.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { isProblem } from "../../kernel/Problem.ts"
import type { ProblemInstance } from "../../kernel/Problem.ts"
import {
  ClientDisconnected,
  InternalError,
  MethodNotAllowed,
  RouteNotFound,
  Unavailable
} from "../contract/Problems.ts"

/**
 * Maps the cause of a failure to the problem for the response. The handler's own problem is used even if it is a defect. Other causes are an unknown
 * path or method, a value that its schema rejects, an unavailable database, or an internal error. `gone`: whether the client has disconnected.
 */
export const problemOf = (
  cause: Cause.Cause<unknown>,
  gone: boolean,
  methods: ReadonlyArray<string> = []
): Effect.Effect<ProblemInstance<string>> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed(gone ? new ClientDisconnected() : new Unavailable())
  const error = cause._tag === "Fail" ? cause.error : Cause.squash(cause)
  if (isProblem(error)) return Effect.succeed(error)
  // The database cannot be read. Failed writes are handled elsewhere: the writer refuses them and logs the fault once.
  if (error instanceof SqlError && isStorageFault(error))
    return Effect.as(Effect.logDebug("the database cannot be read", cause), new BooksUnavailable())
  if (error instanceof PlatformRouteNotFound) {
    return Effect.succeed(methods.length > 0 ? new MethodNotAllowed({ allow: methods }) : new RouteNotFound())
  }
  if (error instanceof HttpApiError.HttpApiDecodeError) return Effect.succeed(InvalidRequest.ofIssues(error.issues))
  // The recursion is as deep as the input's nesting.
  return error instanceof Error && error.message.includes("Maximum call stack size exceeded")
    ? Effect.succeed(
        new InvalidRequest({
          message: "the request is nested too deeply",
          field: "",
          rule: "must be nested less deeply"
        })
      )
    : Effect.as(Effect.logError("a request failed unexpectedly", cause), new InternalError())
}
