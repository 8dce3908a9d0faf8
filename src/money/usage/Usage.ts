/** Schemas for usage records and sums as shown to clients, and for the queries that read them. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { AccountId, TenantId } from "../../kernel/Ids.ts"
import type { TokenDetail } from "../../kernel/TokenDetails.ts"
import { PageQuery, Paginated } from "../../kernel/Page.ts"
import { MembershipStatus, Role } from "../../people/tenants/Account.ts"

// ---- records ------------------------------------------------------------------------------------------------------------

const Tokens = Schema.optionalWith(Schema.Int, { exact: true })

const TokenDetails = Schema.Struct({
  cached_audio_tokens: Tokens,
  cached_tokens: Tokens,
  cache_write_tokens: Tokens,
  cache_write_1h_tokens: Tokens,
  prompt_audio_tokens: Tokens,
  prompt_image_tokens: Tokens,
  reasoning_tokens: Tokens,
  completion_audio_tokens: Tokens,
  completion_image_tokens: Tokens
} satisfies { readonly [Name in TokenDetail]: typeof Tokens })

/** Labels of a call, and the budgets that counted it. */
export const labels = {
  tags: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.String }), { exact: true }),
  /** The end user that the request specified. */
  end_user: Schema.optionalWith(Schema.String, { exact: true }),
  /** The run that owns the calling key. */
  run_id: Schema.optionalWith(Schema.String, { exact: true }),
  /** The ids of the budgets that counted the call. Absent if none did. */
  budgets: Schema.optionalWith(Schema.Array(Schema.String), { exact: true })
} as const

export interface UsageRecord extends Schema.Schema.Type<typeof UsageRecord> {}
export const UsageRecord = Schema.Struct({
  id: Schema.String,
  timestamp: Moment,
  account_id: Schema.String,
  /** The credential's tenant. */
  tenant_id: Schema.String,
  /** The id of the API key's application. Absent for a user token. */
  application_id: Schema.optionalWith(Schema.String, { exact: true }),
  /** The key's current name. Absent for a user token or a deleted key. */
  application_name: Schema.optionalWith(Schema.String, { exact: true }),
  /** The request's `X-Request-Id`. */
  request_id: Schema.optionalWith(Schema.String, { exact: true }),
  usage_type: Schema.Literal("inference", "tool"),
  model: Schema.String,
  provider: Schema.String,
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  total_tokens: Schema.Int,
  units: Schema.Number,
  cost: Usd,
  /** The unpaid part of the charge. Absent if the charge was paid in full. */
  uncollected: Schema.optionalWith(Usd, { exact: true }),
  /** The call's duration in milliseconds. */
  latency: Schema.Number,
  success: Schema.Boolean,
  error_type: Schema.optionalWith(Schema.String, { exact: true }),
  endpoint: Schema.String,
  ...labels,
  billing_account_id: Schema.String,
  billing_source_tenant_id: Schema.String,
  billing_source_kind: Schema.Literal("own", "team"),
  /** Present if the figures are not the provider's own. */
  usage_source: Schema.optionalWith(Schema.Literal("counted", "estimated"), { exact: true }),
  /** Tokens that vendors bill separately, by kind. */
  token_details: Schema.optionalWith(TokenDetails, { exact: true })
}).annotations({ identifier: "UsageRecord" })

export const sorts = ["timestamp", "cost", "total_tokens", "latency"] as const
export type Sort = (typeof sorts)[number]

export const usageTypes = ["inference", "tool"] as const
export type UsageType = (typeof usageTypes)[number]

export const directions = ["asc", "desc"] as const
export type Direction = (typeof directions)[number]

/** Returns a string schema. `Query.ts` validates the string, because each error has specific wording. */
const text = (description: string) => Schema.optionalWith(Schema.String.annotations({ description }), { exact: true })

const oneOf = (values: ReadonlyArray<string>, description: string) =>
  Schema.optionalWith(Schema.String.annotations({ jsonSchema: { type: "string", enum: [...values], description } }), {
    exact: true
  })

const dates = {
  start_date: text("RFC 3339; the first instant in the window"),
  end_date: text("RFC 3339; the first instant after the window. A bare date includes its day")
}

const labelFilters = {
  tag: text("Only calls with this tag: `name=value`, or `name` for any value"),
  end_user: text("Only calls for this end user; if empty, calls without an end user"),
  run: text("Only calls of this run; if empty, calls outside runs")
}

export interface RecordsQuery extends Schema.Schema.Type<typeof RecordsQuery> {}
export const RecordsQuery = Schema.Struct({
  ...PageQuery,
  ...dates,
  sort: oneOf(sorts, "The sort key, `timestamp` by default"),
  direction: oneOf(directions, "The sort direction, `desc` by default"),
  model: text("Only calls of this model. Filtered records are sorted by time"),
  provider: text("Only calls served by this provider"),
  endpoint: text("Only calls to this endpoint"),
  account_id: text("Only calls of this account"),
  application_id: text("Only calls with this application's key; if empty, calls by user token"),
  billing_source_tenant_id: text("Only calls paid for by this tenant"),
  usage_type: oneOf(usageTypes, "Only calls of this type"),
  success: oneOf(["true", "false"], "Only calls that succeeded, or that failed"),
  ...labelFilters,
  cursor: text("The `next_cursor` of the previous page; the new page continues after it")
})

export interface RecordPage extends Schema.Schema.Type<typeof RecordPage> {}
export const RecordPage = Schema.Struct({
  ...Paginated(UsageRecord).fields,
  /** Null on the last page. */
  next_cursor: Schema.NullOr(Schema.String)
}).annotations({ identifier: "UsageRecordPage" })

// ---- summary ------------------------------------------------------------------------------------------------------------

export interface SummaryQuery extends Schema.Schema.Type<typeof SummaryQuery> {}
export const SummaryQuery = Schema.Struct({
  start_time: text("RFC 3339, date and time; the first instant in the window"),
  end_time: text("RFC 3339, date and time; the first instant after the window"),
  key: oneOf(["self"], "`self`: only the calls of the caller's API key, or of the run whose key it is")
})

export interface Summary extends Schema.Schema.Type<typeof Summary> {}
export const Summary = Schema.Struct({
  total_requests: Schema.Int,
  successful_requests: Schema.Int,
  failed_requests: Schema.Int,
  total_tokens: Schema.Int,
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  total_cost: Usd,
  /** 0 if there are no calls. */
  average_latency_ms: Schema.Number,
  model_breakdown: Schema.Array(
    Schema.Struct({
      model: Schema.String,
      request_count: Schema.Int,
      total_tokens: Schema.Int,
      prompt_tokens: Schema.Int,
      completion_tokens: Schema.Int,
      total_cost: Usd
    })
  ),
  endpoint_breakdown: Schema.Array(
    Schema.Struct({
      endpoint: Schema.String,
      request_count: Schema.Int,
      total_tokens: Schema.Int,
      total_cost: Usd
    })
  )
}).annotations({ identifier: "UsageSummary" })

// ---- rollup -------------------------------------------------------------------------------------------------------------

export const rollups = ["daily", "monthly", "annual"] as const
export type RollupName = (typeof rollups)[number]

export interface RollupQuery extends Schema.Schema.Type<typeof RollupQuery> {}
export const RollupQuery = Schema.Struct({
  rollup: oneOf(rollups, "Required: the width of a data point"),
  start_date: text("RFC 3339; rounded down to a whole UTC day"),
  end_date: text("RFC 3339; rounded up to a whole UTC day"),
  application_id: text("Only calls with this application's key"),
  usage_type: oneOf(usageTypes, "Only calls of this type"),
  provider: text("Only calls served by this provider"),
  ...labelFilters
})

/** A period with at least one call. */
export interface DataPoint extends Schema.Schema.Type<typeof DataPoint> {}
export const DataPoint = Schema.Struct({
  /** The start of the period, in UTC. */
  timestamp: Moment,
  total_requests: Schema.Int,
  total_tokens: Schema.Int,
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  units: Schema.Number,
  total_cost: Usd,
  success_count: Schema.Int,
  failure_count: Schema.Int
}).annotations({ identifier: "UsageDataPoint" })

export interface Rollup extends Schema.Schema.Type<typeof Rollup> {}
export const Rollup = Schema.Struct({
  rollup: Schema.Literal(...rollups),
  /** The requested window. */
  start_date: Schema.NullOr(Moment),
  end_date: Schema.NullOr(Moment),
  data_points: Schema.Array(DataPoint)
}).annotations({ identifier: "UsageRollup" })

// ---- series -------------------------------------------------------------------------------------------------------------

export const grains = ["hour", "day"] as const
export type Grain = (typeof grains)[number]

export const seriesBy = [
  "none",
  "model",
  "account",
  "endpoint",
  "application",
  "provider",
  "payer",
  "end_user",
  "run"
] as const
/** `tag:project` means a series for each value of the tag `project`. */
export type TagSeries = `tag:${string}`
export type SeriesBy = (typeof seriesBy)[number] | TagSeries

/** The default and maximum number of named series. */
export const seriesPreset = 8
export const seriesMax = 50

export interface SeriesQuery extends Schema.Schema.Type<typeof SeriesQuery> {}
export const SeriesQuery = Schema.Struct({
  start_time: text("Required, RFC 3339; rounded down to a whole bucket"),
  end_time: text("Required, RFC 3339; rounded up to a whole bucket"),
  grain: oneOf(grains, "The width of a bucket in UTC, `day` by default"),
  by: text(
    `The property that each series stands for: ${seriesBy.join(", ")}, or \`tag:name\` for the values of a tag. Default: none. Payers are tenants`
  ),
  group_by: text("An alias for `by`"),
  ...labelFilters,
  top: text(`The maximum number of named series, 1 to ${seriesMax}. Default: ${seriesPreset}`)
})

export interface PayersQuery extends Schema.Schema.Type<typeof PayersQuery> {}
export const PayersQuery = SeriesQuery.pick("start_time", "end_time", "top")

const SeriesTotal = Schema.Struct({
  cost: Usd,
  requests: Schema.Int,
  failures: Schema.Int,
  tokens: Schema.Int
})

export interface UsageSeries extends Schema.Schema.Type<typeof UsageSeries> {}
export const UsageSeries = Schema.Struct({
  grain: Schema.Literal(...grains),
  by: Schema.Union(Schema.Literal(...seriesBy), Schema.TemplateLiteral("tag:", Schema.String)),
  /** The start of the first bucket and the end of the last. */
  start_time: Moment,
  end_time: Moment,
  timestamps: Schema.Array(Moment),
  /** Series by descending cost. */
  series: Schema.Array(
    Schema.Struct({
      /**
       * A model, an account id, the paying tenant's id, the tag's value, and so on. Empty for `none`, and for calls without an application,
       * end user, run or the tag. `null` combines all others.
       */
      key: Schema.NullOr(Schema.String),
      total: SeriesTotal,
      /** One value per bucket. */
      cost: Schema.Array(Usd),
      requests: Schema.Array(Schema.Int),
      failures: Schema.Array(Schema.Int),
      tokens: Schema.Array(Schema.Int)
    })
  ),
  total: SeriesTotal
}).annotations({ identifier: "UsageSeries" })

export interface PayerSeries extends Schema.Schema.Type<typeof PayerSeries> {}
export const PayerSeries = Schema.Struct({ ...UsageSeries.fields, by: Schema.Literal("payer") }).annotations({
  identifier: "PayerSeries"
})

// ---- team ---------------------------------------------------------------------------------------------------------------

/** The maximum number of members with separate series. */
export const teamMembersMax = 5

export interface TeamQuery extends Schema.Schema.Type<typeof TeamQuery> {}
export const TeamQuery = Schema.Struct({
  start_date: text("RFC 3339; rounded down to a whole UTC day"),
  end_date: text("RFC 3339; rounded up to a whole UTC day"),
  rollup: oneOf(rollups, "The width of a data point, `daily` by default"),
  members: text(
    `Up to ${teamMembersMax} account ids, separated by commas; \`members\` and \`series.members\` then contain only these`
  ),
  ...labelFilters
})

export interface Totals extends Schema.Schema.Type<typeof Totals> {}
export const Totals = Schema.Struct({ total_requests: Schema.Int, total_tokens: Schema.Int, total_cost: Usd })

export interface TeamUsage extends Schema.Schema.Type<typeof TeamUsage> {}
export const TeamUsage = Schema.Struct({
  window: Schema.Struct({ start: Schema.NullOr(Moment), end: Schema.NullOr(Moment) }),
  rollup: Schema.Literal(...rollups),
  tenant_id: TenantId,
  viewer: Schema.Struct({ account_id: AccountId, role: Role }),
  /** Totals for the entire team, regardless of `members`. */
  totals: Totals,
  members: Schema.Array(
    Schema.Struct({
      account_id: AccountId,
      name: Schema.String,
      email: Schema.String,
      /** Null for a former member. */
      role: Schema.NullOr(Role),
      status: MembershipStatus,
      /** Whether the member still belongs to the team. Former members with usage are included. */
      in_roster: Schema.Boolean,
      is_viewer: Schema.Boolean,
      totals: Totals
    })
  ),
  series: Schema.Struct({
    team: Schema.Array(DataPoint),
    viewer: Schema.Array(DataPoint),
    others: Schema.Array(DataPoint),
    /** Data points by account id, for the requested accounts or the five with the highest cost. */
    members: Schema.Record({ key: Schema.String, value: Schema.Array(DataPoint) })
  })
}).annotations({ identifier: "TeamUsage" })
