/** Monitoring routes for liveness, readiness and metrics. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { RateLimited } from "../../http/contract/Problems.ts"
import { InvalidToken, MissingAuthorization } from "../../people/credentials/Problems.ts"
import { NodeFigures } from "./Node.ts"
import { NotReady } from "./Problems.ts"

const Status = Schema.Struct({ status: Schema.Literal("ok") })
/**
 * `node` is present on PostgreSQL, where several nodes can serve one database. `degraded` means that the service serves calls, but users cannot sign
 * in with the listed identity providers.
 */
const Ready = Schema.Struct({
  status: Schema.Literal("ok", "degraded"),
  node: Schema.optional(NodeFigures),
  unreachable_identity_providers: Schema.optional(Schema.Array(Schema.String))
})

export class OpsApi extends HttpApiGroup.make("ops")
  .add(
    HttpApiEndpoint.get("health", "/healthz")
      .addSuccess(Status)
      .annotate(OpenApi.Summary, "Check that the process is alive")
  )
  .add(
    HttpApiEndpoint.get("ready", "/readyz")
      .addSuccess(Ready)
      .addError(NotReady)
      .annotate(OpenApi.Summary, "Check that the service can read and durably write, and that its loops are running")
  )
  .add(
    HttpApiEndpoint.get("metrics", "/metrics")
      .addSuccess(HttpApiSchema.Text({ contentType: "text/plain" }))
      .addError(MissingAuthorization)
      .addError(InvalidToken)
      .addError(RateLimited)
      .annotate(
        OpenApi.Summary,
        "Get metrics in the Prometheus text format; requires the configured bearer token, if there is one"
      )
  ) {}
