/** Routes for monitoring: liveness, readiness, metrics. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { NodeFigures } from "./Node.ts"
import { NotReady } from "./Problems.ts"

const Status = Schema.Struct({ status: Schema.Literal("ok") })
/** `node` is present on PostgreSQL, where several nodes may serve one database. */
const Ready = Schema.Struct({ status: Schema.Literal("ok"), node: Schema.optional(NodeFigures) })

export class OpsApi extends HttpApiGroup.make("ops")
  .add(HttpApiEndpoint.get("health", "/healthz").addSuccess(Status).annotate(OpenApi.Summary, "The process is alive"))
  .add(
    HttpApiEndpoint.get("ready", "/readyz")
      .addSuccess(Ready)
      .addError(NotReady)
      .annotate(OpenApi.Summary, "The service can read and durably write, and its loops run")
  )
  .add(
    HttpApiEndpoint.get("metrics", "/metrics")
      .addSuccess(HttpApiSchema.Text({ contentType: "text/plain" }))
      .annotate(OpenApi.Summary, "Metrics in Prometheus' text format")
  ) {}
