/** Routes for a tenant's balance, ledger and billing account. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { TenantBillingToken, TenantCallsToken } from "../../people/credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { Amounts, BillingAccount, BillingChange, Credits, LedgerPage, LedgerQuery } from "./Billing.ts"
import { InsufficientRole } from "../../people/tenants/Problems.ts"
import { BillingAccountNotFound } from "./Problems.ts"

const path = Schema.Struct({ tenant_id: TenantId })

export class BillingApi extends HttpApiGroup.make("billing")
  .add(
    HttpApiEndpoint.get("credits", "/v1/tenants/:tenant_id/billing/credits")
      .setPath(path)
      .addSuccess(Envelope(Credits))
      .middleware(TenantCallsToken)
      .annotate(OpenApi.Summary, "Get the balance")
  )
  .add(
    HttpApiEndpoint.get("amounts", "/v1/tenants/:tenant_id/billing/amounts")
      .setPath(path)
      .addSuccess(Envelope(Amounts))
      .middleware(TenantBillingToken)
      .annotate(OpenApi.Summary, "Get the balance by kind of credit, with the held, reserved and available amounts")
  )
  .add(
    HttpApiEndpoint.get("ledger", "/v1/tenants/:tenant_id/billing/ledger")
      .setPath(path)
      .setUrlParams(LedgerQuery)
      .addSuccess(Envelope(LedgerPage))
      .addError(InvalidRequest)
      .middleware(TenantBillingToken)
      .annotate(Example, { query: { source: "purchase,transfer_release" } })
      .annotate(OpenApi.Summary, "List the ledger entries, newest first")
  )
  .add(
    HttpApiEndpoint.get("account", "/v1/tenants/:tenant_id/billing")
      .setPath(path)
      .addSuccess(Envelope(BillingAccount))
      .middleware(TenantBillingToken)
      .annotate(OpenApi.Summary, "Get the billing account")
  )
  .add(
    HttpApiEndpoint.patch("change", "/v1/tenants/:tenant_id/billing")
      .setPath(path)
      .setPayload(BillingChange)
      .addSuccess(Envelope(BillingAccount))
      .addError(InsufficientRole)
      .addError(InvalidRequest)
      .middleware(TenantBillingToken)
      .annotate(Example, { body: { billing_emails: ["billing@example.com"], member_spend_enabled: true } })
      .annotate(OpenApi.Summary, "Change the billing addresses or whether members may spend credit (owner or admin)")
  )
  .addError(BillingAccountNotFound) {}
