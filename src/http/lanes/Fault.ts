/** The answer to a failed request, in either lane. */
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
 * From why it failed to the problem to answer with: a problem that the handler failed with or died of; an unknown path, or one whose
 * methods are these; a value that its schema refuses; a database that is away; else a fault of ours. `gone`: whether its client has left.
 */
export const problemOf = (
  cause: Cause.Cause<unknown>,
  gone: boolean,
  methods: ReadonlyArray<string> = []
): Effect.Effect<ProblemInstance<string>> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed(gone ? new ClientDisconnected() : new Unavailable())
  const error = cause._tag === "Fail" ? cause.error : Cause.squash(cause)
  if (isProblem(error)) return Effect.succeed(error)
  // A read that the database cannot answer at the moment. The writer refuses such a write and logs it once.
  if (error instanceof SqlError && isStorageFault(error))
    return Effect.as(Effect.logDebug("the database cannot be read", cause), new BooksUnavailable())
  if (error instanceof PlatformRouteNotFound) {
    return Effect.succeed(methods.length > 0 ? new MethodNotAllowed({ allow: methods }) : new RouteNotFound())
  }
  if (error instanceof HttpApiError.HttpApiDecodeError) return Effect.succeed(InvalidRequest.ofIssues(error.issues))
  // Code that walks a value recurses as deep as the input.
  return error instanceof Error && error.message.includes("Maximum call stack size exceeded")
    ? Effect.succeed(
        new InvalidRequest({ message: "the request is nested too deeply", field: "", rule: "nested less deeply" })
      )
    : Effect.as(Effect.logError("a request failed unexpectedly", cause), new InternalError())
}
