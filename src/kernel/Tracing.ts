/** Optional traces. They are off by default and then cost each request a single comparison. */
import { Context, Effect, Option, Tracer } from "effect"

export class Tracing extends Context.Reference<Tracing>()("tollgate/kernel/Tracing", {
  defaultValue: () => false
}) {}

/** Runs a request inside a span. If the request has a W3C `traceparent` header, the span joins the caller's trace. */
export const traced = <A, E, R>(
  name: string,
  traceparent: string | undefined,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withSpan(effect, name, {
    kind: "server",
    captureStackTrace: false,
    ...(traceparent === undefined ? { root: true } : parentOf(traceparent))
  }).pipe(Effect.withTracerEnabled(true))

/** Creates the header that passes the current span to the next service. Without a span, there is no header. */
export const traceparent: Effect.Effect<Readonly<Record<string, string>>> = Effect.map(
  Effect.option(Effect.currentSpan),
  Option.match({
    onNone: () => ({}),
    onSome: ({ sampled, spanId, traceId }) => ({ traceparent: `00-${traceId}-${spanId}-${sampled ? "01" : "00"}` })
  })
)

const parentOf = (header: string): { readonly root: true } | { readonly parent: Tracer.ExternalSpan } => {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(header) ?? []
  return traceId === undefined || spanId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId)
    ? { root: true }
    : { parent: Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags ?? "0", 16) & 1) === 1 }) }
}
