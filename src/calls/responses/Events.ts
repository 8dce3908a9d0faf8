/** Parsed model responses and stream events. Upstreams can omit or add fields. */
import type { Item } from "../dialects/responses/Prompt.ts"
import type { TypedEvent } from "../engine/Events.ts"

/** The usage that the upstream reports. The charge is in the receipt and the usage record. */
export interface ResponseUsage {
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly total_tokens?: number
  readonly [field: string]: unknown
}

/** A model's response, as opposed to an HTTP response. */
export interface ModelResponse {
  readonly id?: string
  readonly object?: "response"
  readonly status?: string
  readonly model?: string
  readonly output: ReadonlyArray<Item>
  readonly usage?: ResponseUsage | null
  readonly [field: string]: unknown
}

/** An event such as `response.created` or `response.output_text.delta`, identified by its `type`. */
export type ResponseEvent = TypedEvent

/** Parses a stream's events up to the last one, `response.completed` or `response.incomplete`. Fails if the stream breaks. */
export { typedEventsOf as eventsOf } from "../engine/Events.ts"
