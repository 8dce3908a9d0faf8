/** The upstreams as the operator looks at them: how they answer, what they served and what was charged for it, and a vendor's invoice beside that. */
import { Schema } from "effect"
import { Moment, parse } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"

const Day = Schema.String.annotations({ jsonSchema: { type: "string", format: "date" } })

export const UpstreamHealth = Schema.Struct({
  name: Schema.String,
  /** The protocols in which it can be asked. */
  speaks: Schema.Array(Schema.String),
  state: Schema.Literal("ok", "failing", "unused"),
  /** Of the last 15 minutes, by how they ended. */
  requests: Schema.Struct({
    "2xx": Schema.Int,
    "4xx": Schema.Int,
    "5xx": Schema.Int,
    unreachable: Schema.Int
  }),
  failures_in_a_row: Schema.Int,
  last_success_at: Schema.NullOr(Moment),
  last_failure_at: Schema.NullOr(Moment),
  last_failure: Schema.NullOr(Schema.Literal("5xx", "unreachable")),
  /** To the head of an answer, in classes of a quarter. */
  latency_ms: Schema.NullOr(Schema.Struct({ p50: Schema.Number, p95: Schema.Number })),
  minutes: Schema.Array(Schema.Struct({ at: Moment, requests: Schema.Int, failures: Schema.Int }))
}).annotations({ identifier: "OperatorUpstream" })

export const UpstreamList = Schema.Struct({
  /** The node whose exchanges these are, where there may be several. */
  node: Schema.NullOr(Schema.String),
  upstreams: Schema.Array(UpstreamHealth),
  /** Each model with its upstreams in the order of failover. `serving`: the first of them that does not fail. */
  models: Schema.Array(
    Schema.Struct({
      model: Schema.String,
      upstreams: Schema.Array(Schema.String),
      serving: Schema.NullOr(Schema.String)
    })
  )
}).annotations({ identifier: "OperatorUpstreams" })
export interface UpstreamList extends Schema.Schema.Type<typeof UpstreamList> {}

/** A day (UTC) in a query. */
export const dayQuery = (description: string) =>
  Schema.String.pipe(
    Schema.filter((text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && parse(text) !== undefined, {
      message: () => "a date, as 2026-03-01",
      jsonSchema: { type: "string", format: "date", description }
    })
  ).annotations({ description })

export const Costs = Schema.Struct({
  from: Day,
  to: Day,
  /** By day, provider and model. */
  rows: Schema.Array(
    Schema.Struct({
      day: Day,
      provider: Schema.String,
      model: Schema.String,
      requests: Schema.Int,
      failures: Schema.Int,
      prompt_tokens: Schema.Number,
      completion_tokens: Schema.Number,
      units: Schema.Number,
      charged: Usd,
      /** What balances could not pay. */
      uncollected: Usd,
      /** What the vendor takes for it, by the `cost` that the configuration gives the model at this provider; null where it gives none. */
      vendor_cost: Schema.NullOr(Usd)
    })
  ),
  /** Whether there are more rows than are given. */
  truncated: Schema.Boolean
}).annotations({ identifier: "OperatorCosts" })
export interface Costs extends Schema.Schema.Type<typeof Costs> {}

export const Drift = Schema.Struct({
  /** The names of the columns that were read. */
  columns: Schema.Struct({
    day: Schema.String,
    model: Schema.String,
    amount: Schema.String,
    quantity: Schema.NullOr(Schema.String)
  }),
  from: Day,
  to: Day,
  rows: Schema.Array(
    Schema.Struct({
      day: Day,
      /** As the vendor calls it. */
      model: Schema.String,
      theirs: Usd,
      ours: Usd,
      /** Theirs without ours. */
      difference: Usd,
      /** How many calls of ours. */
      requests: Schema.Int,
      /** The sum of the invoice's quantities, where it has any. */
      quantity: Schema.NullOr(Schema.String)
    })
  ),
  totals: Schema.Struct({ theirs: Usd, ours: Usd, difference: Usd }),
  /** Lines that could not be read, and why; the first 100. */
  bad_lines: Schema.Array(Schema.Struct({ line: Schema.Int, why: Schema.String })),
  bad_lines_total: Schema.Int,
  truncated: Schema.Boolean
}).annotations({ identifier: "OperatorDrift" })
export interface Drift extends Schema.Schema.Type<typeof Drift> {}
