/** Routes that sell credit, store payment methods and list payments, and the processor's webhook. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { bodyBytesMax, BodyBytesMax } from "../../http/contract/Annotations.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { TenantBillingToken } from "../../people/credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { PageQuery } from "../../kernel/Page.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { InsufficientRole } from "../../people/tenants/Problems.ts"
import { Checkout, NewCheckout, PaymentMethods, PurchasePage, Setup } from "./Payment.ts"
import { PaymentsUnconfigured, ProcessorTooOften, ProcessorUnavailable, WebhookSignatureInvalid } from "./Problems.ts"

const path = Schema.Struct({ tenant_id: TenantId })

export class PaymentsApi extends HttpApiGroup.make("payments")
  .add(
    HttpApiEndpoint.post("checkout", "/v1/tenants/:tenant_id/billing/checkout")
      .setPath(path)
      .setPayload(NewCheckout)
      .addSuccess(Envelope(Checkout))
      .addError(InvalidRequest)
      .addError(InsufficientRole)
      .annotate(Example, { body: { amount_credits: 25 } })
      .addError(ProcessorTooOften)
      .annotate(OpenApi.Summary, "Get the URL of a page for paying for credits (owner or admin)")
  )
  .add(
    HttpApiEndpoint.post("setup", "/v1/tenants/:tenant_id/billing/payment-methods/setup")
      .setPath(path)
      .addSuccess(Envelope(Setup))
      .addError(InsufficientRole)
      .addError(ProcessorTooOften)
      .annotate(OpenApi.Summary, "Get the URL of a page for storing a payment method (owner or admin)")
  )
  .add(
    HttpApiEndpoint.get("payments", "/v1/tenants/:tenant_id/billing/payments")
      .setPath(path)
      .setUrlParams(Schema.Struct(PageQuery))
      .addSuccess(Envelope(PurchasePage))
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "List the purchases of credit, newest first, with their refunds and disputes")
  )
  .add(
    HttpApiEndpoint.get("methods", "/v1/tenants/:tenant_id/billing/payment-methods")
      .setPath(path)
      .addSuccess(Envelope(PaymentMethods))
      .addError(ProcessorTooOften)
      .annotate(OpenApi.Summary, "List the stored payment methods")
  )
  .addError(PaymentsUnconfigured)
  .addError(ProcessorUnavailable)
  .middleware(TenantBillingToken) {}

export class WebhooksApi extends HttpApiGroup.make("webhooks").add(
  HttpApiEndpoint.post("stripe", "/v1/webhooks/stripe")
    .setPayload(HttpApiSchema.Text({ contentType: "application/json" }))
    .addSuccess(Schema.Struct({ received: Schema.Literal(true) }))
    .addError(InvalidRequest)
    .addError(WebhookSignatureInvalid)
    .addError(PaymentsUnconfigured)
    .annotate(BodyBytesMax, bodyBytesMax)
    .annotate(OpenApi.Summary, "Receive the payment processor's signed events; each takes effect once")
) {}
