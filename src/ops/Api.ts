/** For those who run the service: is it alive, is it ready, what is it doing. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { NotReady } from "./Problems.ts"

const Status = Schema.Struct({ status: Schema.Literal("ok") })

export class OpsApi extends HttpApiGroup.make("ops")
  .add(HttpApiEndpoint.get("health", "/healthz").addSuccess(Status).annotate(OpenApi.Summary, "The process is alive"))
  .add(
    HttpApiEndpoint.get("ready", "/readyz")
      .addSuccess(Status)
      .addError(NotReady)
      .annotate(OpenApi.Summary, "The service can read and durably write, and its loops turn")
  )
  .add(
    HttpApiEndpoint.get("metrics", "/metrics")
      .addSuccess(HttpApiSchema.Text({ contentType: "text/plain" }))
      .annotate(OpenApi.Summary, "Figures in Prometheus' text format")
  ) {}
