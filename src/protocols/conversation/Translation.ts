/**
 * Reading and writing of one protocol. A request is translated from the client's protocol to the vendor's with
 * `translations[vendor].writeRequest(translations[client].readRequest(body))`, an answer back with
 * `translations[client].writeAnswer(translations[vendor].readAnswer(json))`, and a stream with the vendor's `reader` and the client's `writer`.
 * Everything here is pure. Any JSON yields a value or a reason; nothing throws.
 */
import type { Either } from "effect"
import type { Answer } from "./Answer.ts"
import type { Conversation, JsonObject, Protocol } from "./Conversation.ts"
import type { Delta, Failure } from "./Delta.ts"
import type { Uncarriable } from "./Uncarriable.ts"
import type { Usage } from "./Usage.ts"

/** Parameters of a vendor's request in addition to the conversation. */
export interface RequestOptions {
  /** The vendor's name of the model. For Google and Bedrock it is in the path, not in the body. */
  readonly model: string
  /**
   * The maximum number of tokens in the answer, in place of the client's limit. `undefined` if the upstream accepts none; `messages` requires one.
   */
  readonly limit: number | undefined
  /** For `chat`: the field of the limit. */
  readonly limit_field: "max_completion_tokens" | "max_tokens"
  /** For Google and Bedrock it is in the path, not in the body. For `chat` it also requests the usage. */
  readonly stream: boolean
}

/** Properties of a client's answer. */
export interface AnswerOptions {
  /** Unique letters, digits, `-` or `_`. The protocol's prefix (`msg_`, `chatcmpl-`, `resp_`) is added. */
  readonly id: string
  /** The client's name of the model. */
  readonly model: string
  /** Seconds since 1970. */
  readonly created: number
  /** The client's body, because an answer of Responses repeats its fields. */
  readonly request: JsonObject
}

export interface StreamOptions extends AnswerOptions {
  /** For `chat`: whether the client asked for the chunk with the usage. */
  readonly include_usage: boolean
}

/** An event of a vendor's stream: its name, if the protocol has event names, and its data, unchanged. */
export interface VendorEvent {
  readonly event: string | undefined
  readonly data: string
}

/** Reads one stream of a vendor. Stateful. Returns nothing after `end` or `failure`. */
export interface StreamReader {
  /** The deltas of an event; none for an unknown event or a ping. */
  readonly read: (event: VendorEvent) => ReadonlyArray<Delta>
  /**
   * Ends the bytes. Returns `end` if the protocol has no last event (Google) and the answer was complete, a `failure` if the stream was cut, and
   * nothing if the stream's own end was read.
   */
  readonly close: () => ReadonlyArray<Delta>
}

/** Writes one stream for a client. Stateful. */
export interface StreamWriter {
  /**
   * The server-sent events for a delta, possibly none. The text for `end` completes the answer for the client, including the `[DONE]` of `chat`. A
   * caller that must not complete before a commit holds that text back. For Bedrock, too, the text is `event: <name>` and `data: <json>`; its adapter
   * turns it into frames.
   */
  readonly write: (delta: Delta) => string
}

export interface Translation {
  readonly protocol: Protocol
  /** Reads a client's request. `body` is any JSON. */
  readonly readRequest: (body: unknown) => Either.Either<Conversation, Uncarriable>
  /** Writes the body for a vendor. */
  readonly writeRequest: (conversation: Conversation, options: RequestOptions) => Either.Either<JsonObject, Uncarriable>
  /** Whether a request for this model carries the conversation's cache marks. */
  readonly marksCaches: (model: string) => boolean
  /** Reads a vendor's whole answer of status 200. An error or an invalid answer is a failure. */
  readonly readAnswer: (json: unknown) => Either.Either<Answer, Failure>
  /** Writes the client's whole answer. */
  readonly writeAnswer: (answer: Answer, options: AnswerOptions) => JsonObject
  readonly reader: () => StreamReader
  readonly writer: (options: StreamOptions) => StreamWriter
  /**
   * Reads a usage object of this protocol: `usage` of an answer or chunk, `usageMetadata` of Google. `undefined` if it is not an object or has
   * neither total.
   */
  readonly usageOf: (usage: unknown) => Usage | undefined
  /** Writes a usage object of this protocol, with the figures that it supports. */
  readonly writeUsage: (usage: Usage) => JsonObject
}
