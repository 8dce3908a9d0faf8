/** What a service that is not ready says of itself. */
import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class NotReady extends Problem<NotReady>()("NotReady", {
  status: 503,
  error: "the service is not ready",
  code: "not_ready",
  fields: {
    /** Where it cannot be read or written: why. */
    database: Schema.optional(Schema.String),
    /** Of several nodes, where this one may admit no calls: why. */
    node: Schema.optional(Schema.String),
    /** Each loop that does not turn, and why. */
    loops: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.String }))
  }
}) {}
