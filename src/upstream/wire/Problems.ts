/** The problems that callers see when an upstream fails. They never reveal the upstream's address, its credentials or a stack trace. */
import { Schema } from "effect"
import { BrokenRule } from "../../kernel/InvalidRequest.ts"
import { Problem } from "../../kernel/Problem.ts"

/** The upstream's name in the configuration. Programs can read it, but it is not sent to clients. */
const fields = { upstream: Schema.optional(Schema.String) } as const

/** The upstream rejected the request as invalid. The message is the upstream's. */
export class UpstreamRejected extends Problem<UpstreamRejected>()("UpstreamRejected", {
  status: 400,
  error: "the model refused the request",
  code: "upstream_rejected",
  fields: BrokenRule
}) {}

/** The upstream has no capacity. `retry_after` is set if the upstream states when to try again. */
export class UpstreamBusy extends Problem<UpstreamBusy>()("UpstreamBusy", {
  status: 429,
  error: "the model is busy; try again shortly",
  code: "upstream_rate_limited",
  fields,
  details: {}
}) {}

export class UpstreamFailed extends Problem<UpstreamFailed>()("UpstreamFailed", {
  status: 500,
  error: "the model could not answer",
  code: "upstream_error",
  /** `unserved` means that the upstream certainly did no work for the request, because there was no connection or it returned 503 or 529. */
  fields: { ...fields, unserved: Schema.optional(Schema.Boolean) },
  details: {}
}) {}

export const UpstreamRefusal = Schema.Union(UpstreamRejected, UpstreamBusy, UpstreamFailed)
