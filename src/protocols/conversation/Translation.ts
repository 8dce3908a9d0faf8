/**
 * How one protocol is read and written. A request goes from the client's protocol to the vendor's as
 * `translations[vendor].writeRequest(translations[client].readRequest(body))`, an answer back as
 * `translations[client].writeAnswer(translations[vendor].readAnswer(json))`, and a stream through `reader` of the vendor's and `writer` of
 * the client's. All of it is words: nothing here waits, throws, or knows the time; whatever JSON comes, there is a value or a reason.
 */
import type { Either } from "effect"
import type { Answer } from "./Answer.ts"
import type { Conversation, JsonObject, Protocol } from "./Conversation.ts"
import type { Delta, Failure } from "./Delta.ts"
import type { Uncarriable } from "./Uncarriable.ts"
import type { Usage } from "./Usage.ts"

/** Parameters of a vendor's request beside the conversation. */
export interface RequestOptions {
  /** The vendor's name of the model. Google and Bedrock want it in the path: there the body has none. */
  readonly model: string
  /** The most tokens of the answer, in place of the client's. `undefined` where the upstream takes no limit; `messages` wants one. */
  readonly limit: number | undefined
  /** For `chat`: the name of the limit. */
  readonly limit_field: "max_completion_tokens" | "max_tokens"
  /** Google and Bedrock say it by the path: there the body does not. For `chat` it asks for the usage too. */
  readonly stream: boolean
}

/** The id of a client's answer. */
export interface AnswerOptions {
  /** Unique letters, digits, `-` or `_`, without the protocol's prefix (`msg_`, `chatcmpl-`, `resp_`), which is put before it. */
  readonly id: string
  /** The client's name of the model. */
  readonly model: string
  /** Seconds since 1970. */
  readonly created: number
  /** The client's body: an answer of Responses says its fields again. */
  readonly request: JsonObject
}

export interface StreamOptions extends AnswerOptions {
  /** For `chat`: whether the client asked for the chunk with the usage. */
  readonly include_usage: boolean
}

/** An event of a vendor's stream: its name, if the protocol names events beside their data, and its data, unchanged. */
export interface VendorEvent {
  readonly event: string | undefined
  readonly data: string
}

/** Reads one stream of a vendor. Stateful. After `end` or `failure` it says nothing more. */
export interface StreamReader {
  /** The steps in an event; none in one that is unknown, or a ping. */
  readonly read: (event: VendorEvent) => ReadonlyArray<Delta>
  /**
   * The bytes have ended. `end` where the protocol has no last event (Google) and the answer was whole; a `failure` where the stream was
   * cut; nothing where the stream's own end was read.
   */
  readonly close: () => ReadonlyArray<Delta>
}

/** Writes one stream for a client. Stateful. */
export interface StreamWriter {
  /**
   * The text of server-sent events that a step becomes, perhaps none. What is written for the step `end` is what a client takes for the
   * answer's completion, the `[DONE]` of `chat` included: who must not complete before a commit holds that text back. For Bedrock the text
   * is `event: <name>` and `data: <json>` too; its adapter turns them into frames.
   */
  readonly write: (delta: Delta) => string
}

export interface Translation {
  readonly protocol: Protocol
  /** A client's request. `body` is any JSON. */
  readonly readRequest: (body: unknown) => Either.Either<Conversation, Uncarriable>
  /** The body for a vendor. */
  readonly writeRequest: (conversation: Conversation, options: RequestOptions) => Either.Either<JsonObject, Uncarriable>
  /** Whether a request that is written for this model says what is to be cached, where the conversation does. */
  readonly marksCaches: (model: string) => boolean
  /** A vendor's whole answer, of status 200; one that is an error all the same, or makes no sense, is a failure. */
  readonly readAnswer: (json: unknown) => Either.Either<Answer, Failure>
  /** The client's whole answer. */
  readonly writeAnswer: (answer: Answer, options: AnswerOptions) => JsonObject
  readonly reader: () => StreamReader
  readonly writer: (options: StreamOptions) => StreamWriter
  /**
   * The figures of a usage object of this protocol: `usage` of an answer or chunk, `usageMetadata` of Google. `undefined` where it is no
   * object, or has neither of the totals.
   */
  readonly usageOf: (usage: unknown) => Usage | undefined
  /** The usage object of this protocol that says the same, as far as it has names for it. */
  readonly writeUsage: (usage: Usage) => JsonObject
}
