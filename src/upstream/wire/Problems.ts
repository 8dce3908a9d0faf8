/** Problems that callers see for an upstream's failures: never its address, its credentials or its stack. */
import { Schema } from "effect"
import { BrokenRule } from "../../kernel/InvalidRequest.ts"
import { Problem } from "../../kernel/Problem.ts"

/** The upstream's name in the configuration. For programs; not shown to clients. */
const fields = { upstream: Schema.optional(Schema.String) } as const

/** The upstream found the request invalid. The message is its own. */
export class UpstreamRejected extends Problem<UpstreamRejected>()("UpstreamRejected", {
  status: 400,
  error: "the model refused the request",
  code: "upstream_rejected",
  fields: BrokenRule
}) {}

/** `retry_after` if the upstream says when it will have capacity. */
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

/** All problems of an upstream. */
export const UpstreamRefusal = Schema.Union(UpstreamRejected, UpstreamBusy, UpstreamFailed)
