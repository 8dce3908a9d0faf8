/** The route that shows a tenant's allowance. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Envelope } from "../../kernel/Envelope.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { TenantCallsToken } from "../../people/credentials/Security.ts"
import { OwnAllowance } from "./Allowance.ts"

export class AllowancesApi extends HttpApiGroup.make("allowances").add(
  HttpApiEndpoint.get("allowance", "/v1/tenants/:tenant_id/billing/allowance")
    .setPath(Schema.Struct({ tenant_id: TenantId }))
    .addSuccess(Envelope(OwnAllowance))
    .middleware(TenantCallsToken)
    .annotate(OpenApi.Summary, "Get the allowance: its amount, its unused part and its next renewal")
) {}
