/** Answers of responses as values: whole answers, and the events of a stream. Upstreams may omit or add fields. */
import type { Item } from "../dialects/responses/Prompt.ts"
import type { TypedEvent } from "../engine/Events.ts"

/** Tokens as the upstream reports them; what is charged is in the receipt and the usage record. */
export interface ResponseUsage {
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly total_tokens?: number
  readonly [field: string]: unknown
}

/** A response. (Not the platform's, which is HTTP's.) */
export interface ModelResponse {
  readonly id?: string
  readonly object?: "response"
  readonly status?: string
  readonly model?: string
  readonly output: ReadonlyArray<Item>
  readonly usage?: ResponseUsage | null
  readonly [field: string]: unknown
}

/** `response.created`, `response.output_text.delta` and so on, by their `type`. */
export type ResponseEvent = TypedEvent

/** The events of a stream up to its last one, `response.completed` or `response.incomplete`. It fails if the stream breaks. */
export { typedEventsOf as eventsOf } from "../engine/Events.ts"
