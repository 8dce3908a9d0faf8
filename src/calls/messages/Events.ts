/** Messages as values: whole answers and stream events. Upstreams may omit or add fields. */
import type { Block } from "../dialects/messages/Prompt.ts"
import type { TypedEvent } from "../engine/Events.ts"

/** The upstream's reported tokens. The receipt and the usage record have the charge. */
export interface MessageUsage {
  /** Excludes tokens read from or written to a cache. */
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly cache_creation_input_tokens?: number | null
  readonly cache_read_input_tokens?: number | null
  readonly [field: string]: unknown
}

/** A model's answer. (Not a mail message.) */
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

/** `message_start`, `content_block_delta` and so on, distinguished by `type`. */
export type MessageEvent = TypedEvent

/** The events of a stream up to the last one, `message_stop`. Fails if the stream breaks. */
export { typedEventsOf as eventsOf } from "../engine/Events.ts"
