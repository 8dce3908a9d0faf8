/** Parsed completions and stream chunks. Upstreams may omit or add fields. */
import { Effect, Stream } from "effect"
import type { Readable } from "node:stream"
import { parse } from "../../upstream/wire/Failures.ts"
import { UpstreamFailed } from "../../upstream/wire/Problems.ts"

/** The usage that the upstream reports. The charge is in the receipt and the usage record. */
export interface ReportedUsage {
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly total_tokens?: number
  readonly [field: string]: unknown
}

interface Answer<Choice> {
  readonly id?: string
  readonly model?: string
  readonly created?: number
  readonly choices: ReadonlyArray<Choice>
  readonly usage?: ReportedUsage | null
  readonly [field: string]: unknown
}

interface Choice {
  readonly index?: number
  readonly finish_reason?: string | null
  readonly [field: string]: unknown
}

/** An assistant message or its delta. */
export interface Said {
  readonly role?: string
  readonly content?: string | null
  readonly tool_calls?: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly [field: string]: unknown
}

/** A chat completion. */
export interface ChatCompletion extends Answer<Choice & { readonly message?: Said }> {}
/** A chunk of a streamed chat completion. */
export interface ChatChunk extends Answer<Choice & { readonly delta?: Said }> {}
/** A text completion or a chunk of one. */
export interface TextCompletion extends Answer<Choice & { readonly text?: string }> {}

/** Reads the data of each server-sent event. */
const dataIn = (bytes: Readable): Stream.Stream<string, UpstreamFailed> =>
  Stream.fromAsyncIterable(bytes as AsyncIterable<Buffer>, () => new UpstreamFailed()).pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.mapAccum(noLines, (lines, line): readonly [ReadonlyArray<string>, string | undefined] =>
      line === ""
        ? [noLines, lines.join("\n")]
        : [line.startsWith("data:") ? [...lines, line.slice(5)] : lines, undefined]
    ),
    Stream.filter((data): data is string => data !== undefined && data !== "")
  )

/** Parses server-sent events into chunks, up to the last event `[DONE]`. Fails if the stream breaks or an event contains no choices. */
export const eventsOf = (bytes: Readable): Stream.Stream<Record<string, unknown>, UpstreamFailed> =>
  dataIn(bytes).pipe(
    Stream.takeWhile((data) => data.trim() !== "[DONE]"),
    Stream.mapEffect((data) => {
      const chunk = parse(data)
      // The relay marks a broken stream with an event that contains no choices.
      return chunk === undefined || !Array.isArray(chunk.choices) ? new UpstreamFailed() : Effect.succeed(chunk)
    })
  )

/** An event in a protocol that names its events by `type`, such as `message_start` or `response.created`. */
export interface TypedEvent {
  readonly type: string
  readonly [field: string]: unknown
}

/** Parses typed events. Fails if the stream breaks or contains an untyped or `error` event. */
export const typedEventsOf = (bytes: Readable): Stream.Stream<TypedEvent, UpstreamFailed> =>
  dataIn(bytes).pipe(
    Stream.mapEffect((data) => {
      const event = parse(data)
      return typeof event?.type !== "string" || event.type === "error"
        ? new UpstreamFailed()
        : Effect.succeed(event as TypedEvent)
    })
  )

const noLines: ReadonlyArray<string> = []
