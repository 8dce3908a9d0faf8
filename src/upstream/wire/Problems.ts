/** Problems that callers see for an upstream's failures: never its address, its credentials or its stack. */
import { Schema } from "effect"
import { BrokenRule } from "../../kernel/InvalidRequest.ts"
import { Problem } from "../../kernel/Problem.ts"

/** Which upstream it was, by its name in the configuration. A program may read it; it is not shown to a client. */
const fields = { upstream: Schema.optional(Schema.String) } as const

/** The upstream found fault with the request itself; the text is its own. */
export class UpstreamRejected extends Problem<UpstreamRejected>()("UpstreamRejected", {
  status: 400,
  error: "the model refused the request",
  code: "upstream_rejected",
  fields: BrokenRule
}) {}

/** `retry_after` where the upstream says when it has room again. */
export class UpstreamBusy extends Problem<UpstreamBusy>()("UpstreamBusy", {
  status: 429,
  error: "the model is busy, try again shortly",
  code: "upstream_rate_limited",
  fields,
  details: {}
}) {}

export class UpstreamFailed extends Problem<UpstreamFailed>()("UpstreamFailed", {
  status: 500,
  error: "the model could not answer",
  code: "upstream_error",
  /** `unserved`: the upstream certainly did no work for the request. It had no connection, or it answered 503. */
  fields: { ...fields, unserved: Schema.optional(Schema.Boolean) },
  details: {}
}) {}

/** Every way in which an upstream may fail a call. */
export const UpstreamRefusal = Schema.Union(UpstreamRejected, UpstreamBusy, UpstreamFailed)
