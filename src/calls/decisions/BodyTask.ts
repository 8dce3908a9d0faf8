/** The task of decisions for the thread for long bodies, and its result. `ThreadWork` does it. */
import type { Task } from "../threads/Task.ts"

/** Reads the model's response. */
export interface ReadDecisionTask extends Task<DecisionDone> {
  readonly how: "read_decision"
}

export interface DecisionDone {
  /** The defect that makes the response unusable. If it is set, the other members are empty. */
  readonly fault: string | undefined
  /** The members of the response that the service changes. */
  readonly own: OwnMembers
  /** The JSON of the response without these members. */
  readonly rest: Uint8Array
}

/** The members of a response that the service changes. */
export interface OwnMembers {
  readonly id?: unknown
  readonly model?: unknown
  readonly provider?: unknown
  readonly usage?: unknown
}
