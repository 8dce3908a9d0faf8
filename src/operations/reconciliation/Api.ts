/** The operator's routes for reconciliations. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Envelope } from "../../kernel/Envelope.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import * as Keyset from "../operator/Keyset.ts"
import { OperatorToken } from "../operator/Security.ts"
import { dayQuery } from "../operator/Upstream.ts"
import { ReconciliationNotFound } from "./Problems.ts"
import {
  causeNames,
  ReconciledDifference,
  ReconciliationDetail,
  ReconciliationPeriod,
  Reconciliations
} from "./Reconciliation.ts"

const ofVendor = Schema.Struct({ vendor: Schema.String })

const days = {
  from: Schema.optional(dayQuery("The first day (UTC); by default the first one that was compared")),
  to: Schema.optional(dayQuery("The last day (UTC); by default the last one that was compared"))
}

export class ReconciliationsApi extends HttpApiGroup.make("reconciliations")
  .add(
    HttpApiEndpoint.get("reconciliations", "/v1/operator/reconciliations")
      .setUrlParams(
        Schema.Struct({
          vendor: Schema.optional(Schema.String.annotations({ description: "Only this vendor" })),
          ...days
        })
      )
      .addSuccess(Envelope(Reconciliations))
      .annotate(
        OpenApi.Summary,
        "Vendors' bills beside the metered calls, by vendor and day, newest first, with the causes of their differences"
      )
  )
  .add(
    HttpApiEndpoint.get("period", "/v1/operator/reconciliations/:vendor")
      .setPath(ofVendor)
      .setUrlParams(Schema.Struct(days))
      .addSuccess(Envelope(ReconciliationPeriod))
      .annotate(OpenApi.Summary, "A vendor's bill beside the metered calls, by day and model, newest first")
  )
  .add(
    HttpApiEndpoint.get("differences", "/v1/operator/reconciliations/:vendor/differences")
      .setPath(ofVendor)
      .setUrlParams(
        Schema.Struct({
          ...days,
          cause: Schema.optional(
            Schema.Literal(...causeNames).annotations({
              message: () => ({ message: `must be one of ${causeNames.join(", ")}`, override: true }),
              description: "Only differences with this cause"
            })
          ),
          model: Schema.optional(Schema.String.annotations({ description: "Only differences of this model" })),
          limit: Keyset.limit,
          before: Keyset.before
        })
      )
      .addSuccess(Envelope(Keyset.Keyset(ReconciledDifference)))
      .annotate(
        OpenApi.Summary,
        "A vendor's differences, with the call of each if the vendor lists calls: newest day first, the largest of a day first"
      )
  )
  .add(
    HttpApiEndpoint.get("reconciliation", "/v1/operator/reconciliations/:vendor/:day")
      .setPath(Schema.Struct({ vendor: Schema.String, day: dayQuery("The UTC day") }))
      .addSuccess(Envelope(ReconciliationDetail))
      .addError(ReconciliationNotFound)
      .annotate(OpenApi.Summary, "A vendor's day with its models and differences, the largest first")
  )
  .addError(InvalidRequest)
  .middleware(OperatorToken) {}
