/** Parsed Messages responses and stream events. Upstreams can omit or add fields. */
import type { Block } from "../dialects/messages/Prompt.ts"
import type { TypedEvent } from "../engine/Events.ts"

/** The usage that the upstream reports. The charge is in the receipt and the usage record. */
export interface MessageUsage {
  /** The prompt tokens, excluding those read from or written to a cache. */
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly cache_creation_input_tokens?: number | null
  readonly cache_read_input_tokens?: number | null
  readonly [field: string]: unknown
}

/** A model's message, as opposed to an email. */
export interface ModelMessage {
  readonly id?: string
  readonly type: "message"
  readonly role?: string
  readonly model?: string
  readonly content: ReadonlyArray<Block>
  readonly stop_reason?: string | null
  readonly stop_sequence?: string | null
  readonly usage?: MessageUsage
  readonly [field: string]: unknown
}

/** An event such as `message_start` or `content_block_delta`, identified by its `type`. */
export type MessageEvent = TypedEvent

/** Parses a stream's events up to the last one, `message_stop`. Fails if the stream breaks. */
export { typedEventsOf as eventsOf } from "../engine/Events.ts"
