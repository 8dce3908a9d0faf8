import { Schema } from "effect"
import { BrokenRule } from "../../kernel/InvalidRequest.ts"
import { Problem } from "../../kernel/Problem.ts"

export class DecisionBodyUnreadable extends Problem<DecisionBodyUnreadable>()("DecisionBodyUnreadable", {
  status: 400,
  error: "Could not read the request body",
  fields: BrokenRule
}) {}

export class DecisionBodyTooLarge extends Problem<DecisionBodyTooLarge>()("DecisionBodyTooLarge", {
  status: 413,
  error: "The decision request body is too large"
}) {}

/** The upstream's configured name, for embedding programs. Clients never see it. */
const upstream = { upstream: Schema.optional(Schema.String) } as const

/**
 * The model returned an unusable 2xx response, or an error status that `DecisionRefused` does not cover. The message ends with the status, such as
 * `failed with status 500`.
 */
export class DecisionUpstreamFailed extends Problem<DecisionUpstreamFailed>()("DecisionUpstreamFailed", {
  status: 502,
  error: "The decision model upstream failed with status N",
  like: /^The decision model upstream failed with status /,
  fields: { ...upstream, upstream_status: Schema.optional(Schema.Int) },
  details: {}
}) {
  static of(upstream: string, upstream_status: number): DecisionUpstreamFailed {
    const message = `The decision model upstream failed with status ${upstream_status}`
    return new DecisionUpstreamFailed({ upstream, upstream_status, message })
  }
}

export class DecisionUpstreamUnreachable extends Problem<DecisionUpstreamUnreachable>()("DecisionUpstreamUnreachable", {
  status: 502,
  error: "The decision model upstream could not be reached",
  fields: upstream,
  details: {}
}) {}

export class DecisionsUnavailable extends Problem<DecisionsUnavailable>()("DecisionsUnavailable", {
  status: 503,
  error: "decisions are unavailable because no decision model is configured",
  code: "decisions_unavailable"
}) {}

/** Passes the model's error response to the client unchanged. The call costs nothing, and its usage record contains the `error_type`. */
export class DecisionRefused extends Schema.TaggedError<DecisionRefused>("tollgate/DecisionRefused")(
  "DecisionRefused",
  {
    /** The cause: an invalid request, too many requests, or an overloaded model. */
    error_type: Schema.Literal("upstream_rejected", "upstream_rate_limited", "upstream_overloaded"),
    /** The model's status, which determines the error type. */
    status: Schema.Literal(422, 429, 529),
    content_type: Schema.String,
    /** The model's `Retry-After`, if it sent one, in seconds or as a date. */
    retry_after: Schema.optional(Schema.String),
    /** The model's body. For a 422, it identifies the invalid field. */
    body: Schema.Uint8ArrayFromSelf
  }
) {
  override get message() {
    return `the decision model refused the request with status ${this.status}`
  }
}
