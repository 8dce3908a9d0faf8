/** What the decisions route refuses by itself. The model's own refusals are passed through as they come. */
import { BrokenRule } from "../kernel/InvalidRequest.ts"
import { Problem } from "../kernel/Problem.ts"

export class DecisionBodyUnreadable extends Problem<DecisionBodyUnreadable>()("DecisionBodyUnreadable", {
  status: 400,
  error: "Could not read the request body",
  fields: BrokenRule
}) {}

export class DecisionBodyTooLarge extends Problem<DecisionBodyTooLarge>()("DecisionBodyTooLarge", {
  status: 413,
  error: "The decision request body is too large"
}) {}

/** Its text names the status: `The decision model upstream failed with status 500`. */
export class DecisionUpstreamFailed extends Problem<DecisionUpstreamFailed>()("DecisionUpstreamFailed", {
  status: 502,
  error: "The decision model upstream failed with status N"
}) {}

export class DecisionUpstreamUnreachable extends Problem<DecisionUpstreamUnreachable>()("DecisionUpstreamUnreachable", {
  status: 502,
  error: "The decision model upstream could not be reached"
}) {}

export class DecisionsUnavailable extends Problem<DecisionsUnavailable>()("DecisionsUnavailable", {
  status: 503,
  error: "decisions are unavailable: no decision model is configured here",
  code: "decisions_unavailable"
}) {}
