/** The decisions' task for the long-body thread, and its result. `ThreadWork` performs it. */
import type { Task } from "../threads/Task.ts"

/** Reads the model's response. */
export interface ReadDecisionTask extends Task<DecisionDone> {
  readonly how: "read_decision"
}

export interface DecisionDone {
  /** The defect that makes the response unusable. If it is set, the other members are empty. */
  readonly fault: string | undefined
  /** The response members that the service changes. */
  readonly own: OwnMembers
  /** The response's JSON without these members. */
  readonly rest: Uint8Array
}

/** The response members that the service changes. */
export interface OwnMembers {
  readonly id?: unknown
  readonly model?: unknown
  readonly provider?: unknown
  readonly usage?: unknown
}
