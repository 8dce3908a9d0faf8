/**
 * Reading and writing of a protocol. `translations[vendor].writeRequest(translations[client].readRequest(body))` translates a client's request for a
 * vendor. `translations[client].writeAnswer(translations[vendor].readAnswer(json))` translates the answer back. The vendor's `reader` and the
 * client's `writer` translate a stream. There is no I/O, and no function throws: any JSON yields a value or a reason.
 */
import type { Either } from "effect"
import type { Answer } from "./Answer.ts"
import type { Conversation, JsonObject, Protocol } from "./Conversation.ts"
import type { Delta, Failure } from "./Delta.ts"
import type { Uncarriable } from "./Uncarriable.ts"
import type { Usage } from "./Usage.ts"

/** Parameters of a vendor's request in addition to the conversation. */
export interface RequestOptions {
  /** The vendor's model name. Google and Bedrock have it in the path, not in the body. */
  readonly model: string
  /** The answer's token limit, which replaces the client's. `undefined` if the upstream accepts no limit. Messages requires one. */
  readonly limit: number | undefined
  /** Chat's field for the limit. */
  readonly limit_field: "max_completion_tokens" | "max_tokens"
  /** Whether to stream. Google and Bedrock have this in the path, not in the body. Chat also requests the usage. */
  readonly stream: boolean
}

/** Properties of a client's answer. */
export interface AnswerOptions {
  /** A unique id of letters, digits, `-` and `_`. The protocol's prefix (`msg_`, `chatcmpl-`, `resp_`) is added. */
  readonly id: string
  /** The client's model name. */
  readonly model: string
  /** Seconds since 1970. */
  readonly created: number
  /** The client's body. A Responses answer repeats its fields. */
  readonly request: JsonObject
}

export interface StreamOptions extends AnswerOptions {
  /** Whether a chat client requested the usage chunk. */
  readonly include_usage: boolean
}

/** A vendor's stream event: its name, if the protocol has event names, and its original data. */
export interface VendorEvent {
  readonly event: string | undefined
  readonly data: string
}

/** Reads one vendor stream. Stateful. Returns no deltas after `end` or `failure`. */
export interface StreamReader {
  /** The event's deltas. Unknown events and pings have none. */
  readonly read: (event: VendorEvent) => ReadonlyArray<Delta>
  /**
   * Called at the end of the bytes. Returns `end` if the protocol has no last event (Google) and the answer was complete, a `failure` if the stream
   * was cut, and no deltas if the stream's own end was read.
   */
  readonly close: () => ReadonlyArray<Delta>
}

/** Writes one client stream. Stateful. */
export interface StreamWriter {
  /**
   * The server-sent events for a delta, possibly none. The text for `end` completes the answer for the client, including chat's `[DONE]`. A caller
   * that must not complete before a commit holds that text back. Bedrock's text also has the form `event: <name>` and `data: <json>`. An adapter
   * converts it to frames.
   */
  readonly write: (delta: Delta) => string
}

export interface Translation {
  readonly protocol: Protocol
  /** Reads a client's request. `body` is any JSON. */
  readonly readRequest: (body: unknown) => Either.Either<Conversation, Uncarriable>
  /** Writes a vendor's request body. */
  readonly writeRequest: (conversation: Conversation, options: RequestOptions) => Either.Either<JsonObject, Uncarriable>
  /** Whether a request for this model carries the conversation's cache marks. */
  readonly marksCaches: (model: string) => boolean
  /** Reads a vendor's complete answer of status 200. `Left` holds an error, or the fault of an invalid answer. */
  readonly readAnswer: (json: unknown) => Either.Either<Answer, Failure>
  /** Writes a client's complete answer. */
  readonly writeAnswer: (answer: Answer, options: AnswerOptions) => JsonObject
  readonly reader: () => StreamReader
  readonly writer: (options: StreamOptions) => StreamWriter
  /**
   * Reads the protocol's usage object: `usage` in an answer or chunk, or Google's `usageMetadata`. Returns `undefined` if it is not an object or has
   * neither total.
   */
  readonly usageOf: (usage: unknown) => Usage | undefined
  /** Writes the protocol's usage object, with the figures that the protocol supports. */
  readonly writeUsage: (usage: Usage) => JsonObject
}
