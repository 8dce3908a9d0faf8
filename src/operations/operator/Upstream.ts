/** Schemas for upstreams as shown to the operator: their health and costs, and the comparison with a vendor's invoice. */
import { Schema } from "effect"
import { Moment, parse } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { attemptOutcomes } from "../../upstream/routing/Decision.ts"
import { failureKinds } from "../../upstream/routing/Health.ts"
import { reasons } from "../../upstream/routing/Order.ts"

const Day = Schema.String.annotations({ jsonSchema: { type: "string", format: "date" } })

/** The kind of a failure. `unreachable` means status 408 or no response, `busy` means 429, and `key` means 401 or 403. */
const FailureName = Schema.Literal(...failureKinds)

export const UpstreamHealth = Schema.Struct({
  name: Schema.String,
  speaks: Schema.Array(Schema.String),
  state: Schema.Literal("ok", "failing", "unused"),
  /** The end of the cooldown. Until then, this upstream is tried last. */
  cooling_until: Schema.NullOr(Moment),
  /** Requests in the last 15 minutes, by outcome. */
  requests: Schema.Struct({
    "2xx": Schema.Int,
    "4xx": Schema.Int,
    "5xx": Schema.Int,
    unreachable: Schema.Int
  }),
  failures_in_a_row: Schema.Int,
  last_success_at: Schema.NullOr(Moment),
  last_failure_at: Schema.NullOr(Moment),
  last_failure: Schema.NullOr(FailureName),
  /** The last five failures, newest first. */
  last_failures: Schema.Array(Schema.Struct({ at: Moment, kind: FailureName })),
  /** The time from the request to the response's headers. The quantiles are accurate to 25 %. */
  latency_ms: Schema.NullOr(Schema.Struct({ p50: Schema.Number, p95: Schema.Number })),
  minutes: Schema.Array(Schema.Struct({ at: Moment, requests: Schema.Int, failures: Schema.Int }))
}).annotations({ identifier: "OperatorUpstream" })

/** How a call was routed: why its first upstream was chosen, and the outcome of each attempt. */
const RoutingDecision = Schema.Struct({
  at: Moment,
  /** The requested model. */
  model: Schema.String,
  request_id: Schema.NullOr(Schema.String),
  reason: Schema.Literal(...reasons),
  /** The attempts, oldest first. A fallback's model differs from the requested one. */
  attempts: Schema.Array(
    Schema.Struct({ model: Schema.String, upstream: Schema.String, outcome: Schema.Literal(...attemptOutcomes) })
  )
}).annotations({ identifier: "OperatorRoutingDecision" })

export const UpstreamList = Schema.Struct({
  /** The node that reports these exchanges; null on SQLite. */
  node: Schema.NullOr(Schema.String),
  upstreams: Schema.Array(UpstreamHealth),
  /** The models, each with its upstreams in failover order. `serving` is the first upstream that is not failing. */
  models: Schema.Array(
    Schema.Struct({
      model: Schema.String,
      upstreams: Schema.Array(Schema.String),
      serving: Schema.NullOr(Schema.String)
    })
  ),
  /** The last 100 calls that involved a choice or a failure, newest first. */
  decisions: Schema.Array(RoutingDecision)
}).annotations({ identifier: "OperatorUpstreams" })
export interface UpstreamList extends Schema.Schema.Type<typeof UpstreamList> {}

/** Creates a query parameter that contains a UTC day. */
export const dayQuery = (description: string) =>
  Schema.String.pipe(
    Schema.filter((text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && parse(text) !== undefined, {
      message: () => "must be a date such as 2026-03-01",
      jsonSchema: { type: "string", format: "date", description }
    })
  ).annotations({ description })

export const Costs = Schema.Struct({
  from: Day,
  to: Day,
  /** The sums by day, provider and model. */
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
      /** Costs that the balances could not cover. */
      uncollected: Usd,
      /** The vendor's price, computed from the model's configured `cost`; null if none is configured. */
      vendor_cost: Schema.NullOr(Usd)
    })
  ),
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
      /** The vendor's name for the model. */
      model: Schema.String,
      theirs: Usd,
      ours: Usd,
      /** `theirs` minus `ours`. */
      difference: Usd,
      /** The number of our calls. */
      requests: Schema.Int,
      /** The sum of the invoice's quantities; null if it contains none. */
      quantity: Schema.NullOr(Schema.String)
    })
  ),
  totals: Schema.Struct({ theirs: Usd, ours: Usd, difference: Usd }),
  /** The first 100 unreadable lines, with reasons. */
  bad_lines: Schema.Array(Schema.Struct({ line: Schema.Int, why: Schema.String })),
  bad_lines_total: Schema.Int,
  truncated: Schema.Boolean
}).annotations({ identifier: "OperatorDrift" })
export interface Drift extends Schema.Schema.Type<typeof Drift> {}
