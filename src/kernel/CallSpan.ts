/** Spans of metered calls. Their attributes follow OpenTelemetry's conventions for generative AI and never contain prompts or completions. */
import { Effect, Exit } from "effect"
import type { Tracer } from "effect"

export interface SpanOutcome {
  readonly provider: string
  /** The model that served the call in place of the requested model. */
  readonly served: string | undefined
  readonly prompt_tokens: number
  readonly completion_tokens: number
  /** The charge as a decimal string. */
  readonly cost_usd: string
  readonly error_type: string | null
}

/** A call's span. It ends when the call is settled or held. For a streamed call, the request's span has already ended by then. */
export class CallSpan {
  private readonly span: Tracer.Span
  private readonly nanos: () => bigint

  constructor(span: Tracer.Span, nanos: () => bigint) {
    this.span = span
    this.nanos = nanos
  }

  /** Runs the call inside the span, so that requests to upstreams become its children. */
  around<A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.withParentSpan(call, this.span) as Effect.Effect<A, E, R>
  }

  /** Ends the span. Without an `outcome`, the call stays open and is settled elsewhere. */
  end(outcome: SpanOutcome | undefined): void {
    const { span } = this
    if (span.status._tag === "Ended") return
    if (outcome !== undefined) {
      span.attribute("gen_ai.provider.name", outcome.provider)
      if (outcome.served !== undefined) span.attribute("gen_ai.response.model", outcome.served)
      span.attribute("gen_ai.usage.input_tokens", outcome.prompt_tokens)
      span.attribute("gen_ai.usage.output_tokens", outcome.completion_tokens)
      span.attribute("tollgate.cost_usd", Number(outcome.cost_usd))
      if (outcome.error_type !== null) span.attribute("error.type", outcome.error_type)
    }
    const error = outcome?.error_type ?? null
    span.end(this.nanos(), error === null ? Exit.void : Exit.fail(error))
  }
}

/** Begins a call's span, as a child of the request's span if there is one. */
export const begin = (endpoint: string, model: string, provider: string): Effect.Effect<CallSpan> =>
  Effect.flatMap(Effect.clock, (clock) =>
    Effect.map(
      Effect.makeSpan(`${endpoint} ${model}`, {
        captureStackTrace: false,
        attributes: { "gen_ai.request.model": model, "gen_ai.provider.name": provider }
      }),
      (span) => new CallSpan(span, () => clock.unsafeCurrentTimeNanos())
    )
  )
