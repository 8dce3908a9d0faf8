/** Records routing decisions and their reasons for the operator. A record contains the names of models and upstreams, never content or callers. */
import { Context } from "effect"
import type { Reason } from "./Order.ts"

/** The outcomes of an attempt. `charged`: the response is unusable but has a cost. `skipped`: the upstream cannot serve the request. */
export const attemptOutcomes = ["answered", "failed", "busy", "rejected", "charged", "skipped"] as const
export type AttemptOutcome = (typeof attemptOutcomes)[number]

export interface DecisionAttempt {
  readonly model: string
  readonly upstream: string
  readonly outcome: AttemptOutcome
}

export interface Decision {
  readonly at: number
  readonly model: string
  readonly request_id: string | undefined
  /** Why the first upstream was tried first. */
  readonly reason: Reason
  /** The attempts, oldest first. */
  readonly attempts: ReadonlyArray<DecisionAttempt>
}

/** Called after a call's last attempt if its model has several upstreams, retries or fallbacks, or if an attempt failed. */
export class RoutingObserver extends Context.Reference<RoutingObserver>()("tollgate/routing/RoutingObserver", {
  defaultValue: () => (_decision: Decision) => {}
}) {}
