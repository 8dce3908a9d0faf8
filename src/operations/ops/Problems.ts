import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class NotReady extends Problem<NotReady>()("NotReady", {
  status: 503,
  error: "the service is not ready",
  code: "not_ready",
  fields: {
    /** Why the database cannot be read or written. */
    database: Schema.optional(Schema.String),
    /** Why this node must not admit calls. */
    node: Schema.optional(Schema.String),
    loops: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.String }))
  }
}) {}
