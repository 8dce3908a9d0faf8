/** Model responses as values: whole responses and stream events. Upstreams may omit or add fields. */
import type { Item } from "../dialects/responses/Prompt.ts"
import type { TypedEvent } from "../engine/Events.ts"

/** The upstream's reported tokens. The receipt and the usage record have the charge. */
export interface ResponseUsage {
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly total_tokens?: number
  readonly [field: string]: unknown
}

/** A model's response. (Not an HTTP response.) */
export interface ModelResponse {
  readonly id?: string
  readonly object?: "response"
  readonly status?: string
  readonly model?: string
  readonly output: ReadonlyArray<Item>
  readonly usage?: ResponseUsage | null
  readonly [field: string]: unknown
}

/** `response.created`, `response.output_text.delta` and so on, distinguished by `type`. */
export type ResponseEvent = TypedEvent

/** The events of a stream up to the last one, `response.completed` or `response.incomplete`. Fails if the stream breaks. */
export { typedEventsOf as eventsOf } from "../engine/Events.ts"
