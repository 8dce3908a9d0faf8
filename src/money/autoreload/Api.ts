/** Routes for a tenant's auto-reload and balance alerts. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { TenantBillingToken } from "../../people/credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { ProcessorTooOften, ProcessorUnavailable } from "../payments/Problems.ts"
import { InsufficientRole } from "../../people/tenants/Problems.ts"
import {
  AutoReloadBusy,
  AutoReloadDisabled,
  AutoReloadUnconfigured,
  PaymentDeclined,
  PaymentMethodNotFound,
  PaymentMethodRequired
} from "./Problems.ts"
import { AutoReload, AutoReloadChange } from "./AutoReload.ts"

const path = Schema.Struct({ tenant_id: TenantId })

export class AutoReloadApi extends HttpApiGroup.make("autoReload")
  .add(
    HttpApiEndpoint.get("find", "/v1/tenants/:tenant_id/billing/auto-reload")
      .setPath(path)
      .addSuccess(Envelope(AutoReload))
      .annotate(OpenApi.Summary, "Get the settings and state of auto-reload")
  )
  .add(
    HttpApiEndpoint.put("change", "/v1/tenants/:tenant_id/billing/auto-reload")
      .setPath(path)
      .setPayload(AutoReloadChange)
      .addSuccess(Envelope(AutoReload))
      .addError(InvalidRequest)
      .addError(InsufficientRole)
      .addError(PaymentMethodRequired)
      .addError(PaymentMethodNotFound)
      .addError(AutoReloadUnconfigured)
      .addError(ProcessorTooOften)
      .addError(ProcessorUnavailable)
      .annotate(Example, {
        body: {
          auto_reload: {
            enabled: true,
            threshold_usd: 5,
            amount_credits: 25,
            payment_method_id: "{payment_method_id}"
          },
          alerts: { enabled: true, warn_threshold_usd: 2, rearm_threshold_usd: 4 }
        }
      })
      .annotate(OpenApi.Summary, "Replace all settings (owner or admin); unknown fields are rejected")
  )
  .add(
    HttpApiEndpoint.post("charge", "/v1/tenants/:tenant_id/billing/auto-reload/charge")
      .setPath(path)
      .addSuccess(Envelope(AutoReload))
      .addError(InsufficientRole)
      .addError(PaymentDeclined)
      .addError(AutoReloadBusy)
      .addError(AutoReloadDisabled)
      .addError(AutoReloadUnconfigured)
      .annotate(OpenApi.Summary, "Charge the stored payment method now (owner or admin)")
  )
  .middleware(TenantBillingToken) {}
