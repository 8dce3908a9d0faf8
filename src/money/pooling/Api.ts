/** Routes for the caller's billing sources: the possible payers, the caller's choice, and the amounts that each source paid. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Example } from "../../http/contract/Documented.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { BillingToken, CallsToken } from "../../people/credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { InvalidBillingSource } from "./Problems.ts"
import { BillingSources, Capacity, PayerUsage, PayerUsageQuery, Selection } from "./Source.ts"

export class PoolingApi extends HttpApiGroup.make("pooling")
  .add(
    HttpApiEndpoint.get("sources", "/v1/me/billing-sources")
      .addSuccess(Envelope(BillingSources))
      .middleware(CallsToken)
      .annotate(OpenApi.Summary, "List the sources that may pay for my calls, in the order in which they are charged")
  )
  .add(
    HttpApiEndpoint.put("select", "/v1/me/billing-source")
      .setPayload(Selection)
      .addSuccess(Envelope(BillingSources))
      .addError(InvalidBillingSource)
      .addError(InvalidRequest)
      .middleware(BillingToken)
      .annotate(Example, { body: { mode: "automatic" } })
      .annotate(OpenApi.Summary, "Pin the source that is charged first, or leave the order to the service")
  )
  .add(
    HttpApiEndpoint.get("payerUsage", "/v1/me/billing-sources/usage")
      .setUrlParams(PayerUsageQuery)
      .addSuccess(Envelope(PayerUsage))
      .addError(InvalidRequest)
      .middleware(CallsToken)
      .annotate(OpenApi.Summary, "Get the amount that each source paid for my calls, in whole UTC days")
  )
  .add(
    HttpApiEndpoint.get("capacity", "/v1/me/billing-sources/capacity")
      .addSuccess(Envelope(Capacity))
      .middleware(CallsToken)
      .annotate(OpenApi.Summary, "Get the credit of my sources, including escrow")
  ) {}
