/** Answers of messages as values: whole answers, and the events of a stream. Upstreams may omit or add fields. */
import type { Block } from "../dialects/messages/Prompt.ts"
import type { TypedEvent } from "../engine/Events.ts"

/** Tokens as the upstream reports them; what is charged is in the receipt and the usage record. */
export interface MessageUsage {
  /** Without those that came from a cache, or went into it. */
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly cache_creation_input_tokens?: number | null
  readonly cache_read_input_tokens?: number | null
  readonly [field: string]: unknown
}

/** A message. (Not one that is mailed.) */
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

/** `message_start`, `content_block_delta` and so on, by their `type`. */
export type MessageEvent = TypedEvent

/** The events of a stream up to its last one, `message_stop`. It fails if the stream breaks. */
export { typedEventsOf as eventsOf } from "../engine/Events.ts"
