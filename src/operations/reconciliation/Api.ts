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
  from: Schema.optional(dayQuery("The first day (UTC); by default the first compared day")),
  to: Schema.optional(dayQuery("The last day (UTC); by default the last compared day"))
}

export class ReconciliationsApi extends HttpApiGroup.make("reconciliations")
  .add(
    HttpApiEndpoint.get("reconciliations", "/v1/operator/reconciliations")
      .setUrlParams(
        Schema.Struct({
          vendor: Schema.optional(Schema.String.annotations({ description: "Return only this vendor" })),
          ...days
        })
      )
      .addSuccess(Envelope(Reconciliations))
      .annotate(
        OpenApi.Summary,
        "List the comparisons of vendors' bills with the metered calls by vendor and day, newest first, with the causes of differences"
      )
  )
  .add(
    HttpApiEndpoint.get("period", "/v1/operator/reconciliations/:vendor")
      .setPath(ofVendor)
      .setUrlParams(Schema.Struct(days))
      .addSuccess(Envelope(ReconciliationPeriod))
      .annotate(OpenApi.Summary, "Compare a vendor's bill with the metered calls by day and model, newest first")
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
              description: "Return only differences with this cause"
            })
          ),
          model: Schema.optional(Schema.String.annotations({ description: "Return only differences of this model" })),
          limit: Keyset.limit,
          before: Keyset.before
        })
      )
      .addSuccess(Envelope(Keyset.Keyset(ReconciledDifference)))
      .annotate(
        OpenApi.Summary,
        "List a vendor's differences, newest day first, the largest of a day first; each with its call if the vendor lists calls"
      )
  )
  .add(
    HttpApiEndpoint.get("reconciliation", "/v1/operator/reconciliations/:vendor/:day")
      .setPath(Schema.Struct({ vendor: Schema.String, day: dayQuery("The UTC day") }))
      .addSuccess(Envelope(ReconciliationDetail))
      .addError(ReconciliationNotFound)
      .annotate(OpenApi.Summary, "Get a vendor's day with its models and differences, the largest first")
  )
  .addError(InvalidRequest)
  .middleware(OperatorToken) {}
