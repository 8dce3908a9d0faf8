/**
 * Exports traces over OTLP.
 *
 * Where the specification is silent:
 * - Tracing is off unless `telemetry` in the configuration defines a collector.
 */
import * as OtlpSerialization from "@effect/opentelemetry/OtlpSerialization"
import * as OtlpTracer from "@effect/opentelemetry/OtlpTracer"
import { FetchHttpClient } from "@effect/platform"
import { Effect, Layer, Redacted, Schema } from "effect"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { Address, NonEmpty, secretOf } from "../../kernel/Setting.ts"
import { Tracing } from "../../kernel/Tracing.ts"
import { version } from "../../kernel/Version.ts"

const Collector = Schema.Struct({
  /** The collector's address, without `/v1/traces`. */
  endpoint: Address,
  /** The environment variable that contains the collector's Authorization header. */
  authorization_env: Schema.optional(NonEmpty)
})

export const fields = {
  /** The collector that receives traces by OTLP over HTTP. Without it, tracing is off. */
  telemetry: Schema.optional(Collector)
}

/** Provides the exporter. Fails if the environment variable for the header is not set. */
export const layer = ({ telemetry }: { readonly telemetry?: typeof Collector.Type | undefined }) =>
  telemetry === undefined
    ? Layer.empty
    : Layer.unwrapEffect(
        Effect.gen(function* () {
          const { service_name } = yield* ServiceInfo
          const authorization = yield* secretOf("telemetry.authorization_env", telemetry.authorization_env)
          const tracer = OtlpTracer.layer({
            url: `${telemetry.endpoint.replace(/\/+$/, "")}/v1/traces`,
            resource: { serviceName: service_name, serviceVersion: version },
            ...(authorization !== undefined && { headers: { authorization: Redacted.value(authorization) } })
          })
          return Layer.merge(
            Layer.succeed(Tracing, true),
            tracer.pipe(Layer.provide([OtlpSerialization.layerJson, FetchHttpClient.layer]))
          )
        })
      )
