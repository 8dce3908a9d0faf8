/** Log lines about calls. They contain facts, never a call's content. */
import { Effect } from "effect"
import { isProblem } from "../../kernel/Problem.ts"
import type { CallFacts } from "../ledger/rules/Transaction.ts"

export const refusedCall = "a call was refused"

/**
 * Marks the problems that the gate has logged. The HTTP lanes log the others. The mark is a property because Effect wraps an error inside a span
 * in a proxy, which keeps the properties but not the identity.
 */
const logged = Symbol("tollgate/gate/logged")

/** Whether the gate has logged this problem. */
export const isLogged = (problem: object): boolean => logged in problem

/** Logs a problem of a call. */
export const told = (
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
