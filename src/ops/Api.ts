/** For those who run the service: is it alive, is it ready, what is it doing. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Problem } from "../kernel/Problem.ts"

/** The database or its writer does not answer. */
export class NotReady extends Problem<NotReady>()("NotReady", {
  status: 503,
  error: "the database does not answer",
  code: "not_ready"
}) {}

const Status = Schema.Struct({ status: Schema.Literal("ok") })

export class OpsApi extends HttpApiGroup.make("ops")
  .add(HttpApiEndpoint.get("health", "/healthz").addSuccess(Status).annotate(OpenApi.Summary, "The process is alive"))
  .add(
    HttpApiEndpoint.get("ready", "/readyz")
      .addSuccess(Status)
      .addError(NotReady)
      .annotate(OpenApi.Summary, "The service can read and durably write")
  )
  .add(
    HttpApiEndpoint.get("metrics", "/metrics")
      .addSuccess(HttpApiSchema.Text({ contentType: "text/plain" }))
      .annotate(OpenApi.Summary, "Figures in Prometheus' text format")
  ) {}
