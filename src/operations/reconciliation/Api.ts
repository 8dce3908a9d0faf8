/** The operator's routes for reconciliations. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Envelope } from "../../kernel/Envelope.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { OperatorToken } from "../operator/Security.ts"
import { dayQuery } from "../operator/Upstream.ts"
import { ReconciliationNotFound } from "./Problems.ts"
import { ReconciliationDetail, Reconciliations } from "./Reconciliation.ts"

export class ReconciliationsApi extends HttpApiGroup.make("reconciliations")
  .add(
    HttpApiEndpoint.get("reconciliations", "/v1/operator/reconciliations")
      .setUrlParams(
        Schema.Struct({
          vendor: Schema.optional(Schema.String.annotations({ description: "Return only this vendor" })),
          from: Schema.optional(dayQuery("The first day (UTC); by default the first compared day")),
          to: Schema.optional(dayQuery("The last day (UTC); by default the last compared day"))
        })
      )
      .addSuccess(Envelope(Reconciliations))
      .annotate(
        OpenApi.Summary,
        "List the comparisons of vendors' bills with the metered calls by vendor and day, newest first, with the causes of differences"
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
