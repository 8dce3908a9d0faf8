/** Usage routes: an account's summary; a tenant's records, rollups and series; and explained charges. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { ApiKey, CallsToken, KeyOrToken, TenantUsageToken } from "../../people/credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { NotAMember } from "../../people/tenants/Problems.ts"
import { Explanation } from "./Explanation.ts"
import { HeldKey } from "./HeldKey.ts"
import { InvalidEndTime, InvalidRollup, InvalidStartTime, TeamPlanRequired, UsageNotFound } from "./Problems.ts"
import {
  PayerSeries,
  PayersQuery,
  RecordPage,
  RecordsQuery,
  Rollup,
  RollupQuery,
  SeriesQuery,
  Summary,
  SummaryQuery,
  TeamQuery,
  TeamUsage,
  UsageSeries
} from "./Usage.ts"

const path = Schema.Struct({ tenant_id: TenantId })

export class UsageApi extends HttpApiGroup.make("usage")
  .add(
    HttpApiEndpoint.get("summary", "/v1/usage")
      .setUrlParams(SummaryQuery)
      .addSuccess(Summary)
      .addError(InvalidStartTime)
      .addError(InvalidEndTime)
      .addError(InvalidRequest)
      .middleware(KeyOrToken)
      .annotate(Example, { query: { start_time: "2026-01-01T00:00:00Z" } })
      .annotate(OpenApi.Summary, "Get the usage of the caller's account in the credential's tenant")
  )
  .add(
    HttpApiEndpoint.get("heldKey", "/v1/key")
      .addSuccess(Envelope(HeldKey))
      .middleware(ApiKey)
      .annotate(OpenApi.Summary, "Get the caller's API key with its limits, models, expiry and usage")
  )
  .add(
    HttpApiEndpoint.get("payers", "/v1/usage/payers")
      .setUrlParams(PayersQuery)
      .addSuccess(PayerSeries)
      .addError(InvalidRequest)
      .middleware(KeyOrToken)
      .annotate(Example, { query: { start_time: "2026-01-01", end_time: "2026-01-31" } })
      .annotate(OpenApi.Summary, "Get the caller's calls in all tenants by day, with a series per paying tenant")
  )
  .add(
    HttpApiEndpoint.get("explain", "/v1/usage/:usage_id/explain")
      .setPath(Schema.Struct({ usage_id: Schema.String }))
      .addSuccess(Explanation)
      .addError(UsageNotFound)
      .middleware(KeyOrToken)
      .annotate(OpenApi.Summary, "Explain a charge: its units, price version, reservation, payer and reason")
  )
  .add(
    HttpApiEndpoint.get("records", "/v1/tenants/:tenant_id/usage")
      .setPath(path)
      .setUrlParams(RecordsQuery)
      .addSuccess(Envelope(RecordPage))
      .addError(InvalidRequest)
      .middleware(TenantUsageToken)
      .annotate(Example, { query: { per_page: 20, sort: "cost", direction: "desc" } })
      .annotate(OpenApi.Summary, "List the records of the calls made with the tenant's credentials")
  )
  .add(
    HttpApiEndpoint.get("rollup", "/v1/tenants/:tenant_id/usage/rollup")
      .setPath(path)
      .setUrlParams(RollupQuery)
      .addSuccess(Envelope(Rollup))
      .addError(InvalidRollup)
      .addError(InvalidRequest)
      .middleware(TenantUsageToken)
      .annotate(Example, { query: { rollup: "daily", start_date: "2026-01-01" } })
      .annotate(
        OpenApi.Summary,
        "Get the tenant's usage by day, month or year, in UTC; periods without calls are absent"
      )
  )
  .add(
    HttpApiEndpoint.get("series", "/v1/tenants/:tenant_id/usage/series")
      .setPath(path)
      .setUrlParams(SeriesQuery)
      .addSuccess(Envelope(UsageSeries))
      .addError(InvalidRequest)
      .middleware(TenantUsageToken)
      .annotate(Example, {
        query: { start_time: "2026-01-01T00:00:00Z", end_time: "2026-01-31", grain: "hour", by: "model", top: "5" }
      })
      .annotate(OpenApi.Summary, "Get the tenant's usage by hour or day, with a series per model, account or other key")
  )
  .add(
    HttpApiEndpoint.get("team", "/v1/tenants/:tenant_id/usage/team")
      .setPath(path)
      .setUrlParams(TeamQuery)
      .addSuccess(Envelope(TeamUsage))
      .addError(InvalidRollup)
      .addError(InvalidRequest)
      .addError(NotAMember)
      .addError(TeamPlanRequired)
      .middleware(CallsToken)
      .annotate(Example, { query: { rollup: "monthly" } })
      .annotate(OpenApi.Summary, "Get the usage paid from the team's pool, by member")
  )
  .add(
    HttpApiEndpoint.get("teamSeries", "/v1/tenants/:tenant_id/usage/team/series")
      .setPath(path)
      .setUrlParams(SeriesQuery)
      .addSuccess(Envelope(UsageSeries))
      .addError(InvalidRequest)
      .addError(NotAMember)
      .addError(TeamPlanRequired)
      .middleware(CallsToken)
      .annotate(Example, {
        query: { start_time: "2026-01-01T00:00:00Z", end_time: "2026-01-31", by: "tag:project" }
      })
      .annotate(
        OpenApi.Summary,
        "Get the usage paid from the team's pool by hour or day, with a series per tag value, model or other key"
      )
  ) {}
