/** Answers of messages as values: whole ones, and the events of those that are streamed. Upstreams may leave fields out, or add some. */
import { Effect, Stream } from "effect"
import type { Readable } from "node:stream"
import { dataIn } from "../engine/Events.ts"
import { parse } from "../../upstream/wire/Failures.ts"
import { UpstreamFailed } from "../../upstream/wire/Problems.ts"
import type { Block } from "../dialects/messages/Prompt.ts"

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
export interface MessageEvent {
  readonly type: string
  readonly [field: string]: unknown
}

/** The events of a stream up to its last one, `message_stop`. It fails where the stream breaks. */
export const eventsOf = (bytes: Readable): Stream.Stream<MessageEvent, UpstreamFailed> =>
  dataIn(bytes).pipe(
    Stream.mapEffect((data) => {
      const event = parse(data)
      return typeof event?.type !== "string" || event.type === "error"
        ? new UpstreamFailed()
        : Effect.succeed(event as { readonly type: string })
    })
  )
