/** Answers of responses as values: whole ones, and the events of those that are streamed. Upstreams may leave fields out, or add some. */
import { Effect, Stream } from "effect"
import type { Readable } from "node:stream"
import { dataIn } from "../engine/Events.ts"
import { parse } from "../../upstream/wire/Failures.ts"
import { UpstreamFailed } from "../../upstream/wire/Problems.ts"
import type { Item } from "../dialects/responses/Prompt.ts"

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
export interface ResponseEvent {
  readonly type: string
  readonly [field: string]: unknown
}

/** The events of a stream up to its last one, `response.completed` or `response.incomplete`. It fails where the stream breaks. */
export const eventsOf = (bytes: Readable): Stream.Stream<ResponseEvent, UpstreamFailed> =>
  dataIn(bytes).pipe(
    Stream.mapEffect((data) => {
      const event = parse(data)
      return typeof event?.type !== "string" || event.type === "error"
        ? new UpstreamFailed()
        : Effect.succeed(event as { readonly type: string })
    })
  )
