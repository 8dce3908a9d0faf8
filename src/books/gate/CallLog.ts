/** Logs facts about refused and failed calls, never their content. */
import { Effect } from "effect"
import { isProblem } from "../../kernel/Problem.ts"
import type { CallFacts } from "../ledger/rules/Transaction.ts"

export const refusedCall = "a call was refused"

/**
 * Marks logged problems; the HTTP lanes log the others. The mark is a property, because Effect wraps an error inside a span in a proxy, which
 * preserves properties but not identity.
 */
const logged = Symbol("tollgate/gate/logged")

export const isLogged = (problem: object): boolean => logged in problem

/** Logs a call's problem, and marks it as logged. */
export const logProblem = (
  message: string,
  { application_id, model, provider, tenant_id }: CallFacts,
  request_id: string | undefined,
  milliseconds: number,
  problem: unknown
): Effect.Effect<void> => {
  const upstream = (problem as { readonly upstream?: unknown } | undefined)?.upstream
  if (isProblem(problem)) Object.defineProperty(problem, logged, { value: true, configurable: true })
  return Effect.annotateLogs(Effect.logInfo(message), {
    tenant: tenant_id,
    ...(application_id !== null && { key: application_id }),
    model,
    upstream: typeof upstream === "string" ? upstream : provider,
    ...(isProblem(problem) && { status: problem.status, code: problem.body.code ?? problem._tag }),
    milliseconds,
    ...(request_id !== undefined && { request_id })
  })
}
