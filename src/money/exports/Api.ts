/** The route that exports a tenant's charged calls as CSV. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { NoHead } from "../../http/contract/Annotations.ts"
import { Example } from "../../http/contract/Documented.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { TenantBillingToken } from "../../people/credentials/Security.ts"
import { InsufficientRole } from "../../people/tenants/Problems.ts"
import { BillingAccountNotFound } from "../billing/Problems.ts"
import { ExportQuery } from "./Export.ts"
import { ExportInProgress, ExportsBusy } from "./Problems.ts"

export class ExportsApi extends HttpApiGroup.make("exports").add(
  HttpApiEndpoint.get("export", "/v1/tenants/:tenant_id/billing/export")
    .setPath(Schema.Struct({ tenant_id: TenantId }))
    .setUrlParams(ExportQuery)
    .addSuccess(HttpApiSchema.Text({ contentType: "text/csv" }))
    .addError(InvalidRequest)
    .addError(InsufficientRole)
    .addError(BillingAccountNotFound)
    .addError(ExportInProgress)
    .addError(ExportsBusy)
    .middleware(TenantBillingToken)
    .annotate(NoHead, true)
    .annotate(Example, { query: { format: "focus", from: "2026-01-01", to: "2026-02-01" } })
    .annotate(
      OpenApi.Summary,
      "Download the calls that the tenant's billing account paid for as CSV, oldest first (owner or admin)"
    )
) {}
