/**
 * Reads and writes a protocol. `translations[vendor].writeRequest(translations[client].readRequest(body))` translates a client's request for a
 * vendor, and `translations[client].writeAnswer(translations[vendor].readAnswer(json))` translates the response back. To translate a stream, the
 * vendor's `reader` feeds the client's `writer`. There is no I/O, and no function throws: any JSON yields a value or a reason.
 */
import type { Either } from "effect"
import type { Answer } from "./Answer.ts"
import type { Conversation, JsonObject, Protocol } from "./Conversation.ts"
import type { Delta, Failure } from "./Delta.ts"
import type { Uncarriable } from "./Uncarriable.ts"
import type { Usage } from "./Usage.ts"

/** A vendor request's settings that are not part of the conversation. */
export interface RequestOptions {
  /** The vendor's name for the model. In Google's and Bedrock's protocols, the name is in the path instead of the body. */
  readonly model: string
  /** The completion limit, which replaces the client's limit. If it is `undefined`, the client's limit applies. Messages requires a limit. */
  readonly limit: number | undefined
  /** Chat's field for the limit. */
  readonly limit_field: "max_completion_tokens" | "max_tokens"
  /** In Google's and Bedrock's protocols, the path selects streaming instead of the body. A chat request then also requests the usage. */
  readonly stream: boolean
}

/** The properties of a client's response that are not the model's output. */
export interface AnswerOptions {
  /** A unique id of letters, digits, `-` and `_`. The protocol's prefix (`msg_`, `chatcmpl-` or `resp_`) is added to it. */
  readonly id: string
  /** The client's name for the model. */
  readonly model: string
  /** Unix time in seconds. */
  readonly created: number
  /** The client's request body. Responses repeats its fields. */
  readonly request: JsonObject
}

export interface StreamOptions extends AnswerOptions {
  /** Whether a chat client requested the usage chunk. */
  readonly include_usage: boolean
}

/** An event in a vendor's stream: its original data, and its name if the protocol names events. */
export interface VendorEvent {
  readonly event: string | undefined
  readonly data: string
}

/** Reads one vendor stream. A reader is stateful and returns no deltas after `end` or `failure`. */
export interface StreamReader {
  /** Returns the deltas in an event. Unknown events and pings contain none. */
  readonly read: (event: VendorEvent) => ReadonlyArray<Delta>
  /**
   * Ends the stream when there are no more bytes. Returns `end` if the response is complete but had no last event, as in Google's protocol. Returns a
   * `failure` if the stream was truncated, and no deltas if it has already ended.
   */
  readonly close: () => ReadonlyArray<Delta>
}

/** Writes one client stream. A writer is stateful. */
export interface StreamWriter {
  /**
   * Returns the server-sent events for a delta, possibly none. The string for `end` completes the client's response, including chat's `[DONE]`. A
   * caller that must commit first withholds that string. Bedrock's events also have this form: `event: <name>` and `data: <json>`. An adapter
   * converts them to frames.
   */
  readonly write: (delta: Delta) => string
}

export interface Translation {
  readonly protocol: Protocol
  readonly readRequest: (body: unknown) => Either.Either<Conversation, Uncarriable>
  readonly writeRequest: (conversation: Conversation, options: RequestOptions) => Either.Either<JsonObject, Uncarriable>
  /** Returns whether `writeRequest` writes cache breakpoints for this model. */
  readonly marksCaches: (model: string) => boolean
  /** Reads the body of a vendor's complete response with status 200. `Left` contains the vendor's error or describes an invalid response. */
  readonly readAnswer: (json: unknown) => Either.Either<Answer, Failure>
  readonly writeAnswer: (answer: Answer, options: AnswerOptions) => JsonObject
  readonly reader: () => StreamReader
  readonly writer: (options: StreamOptions) => StreamWriter
  /**
   * Reads the protocol's usage object: `usage` in a response or chunk, or Google's `usageMetadata`. Returns `undefined` for any other value or if
   * neither total is reported.
   */
  readonly usageOf: (usage: unknown) => Usage | undefined
  /** Writes the protocol's usage object, with the figures that the protocol supports. */
  readonly writeUsage: (usage: Usage) => JsonObject
}
