/**
 * A request to a model, in one form for all protocols: each protocol is read into it and written from it.
 *
 * Names of the wire that several protocols share keep that name. Each part knows where it stood in the client's body (`at`), so that a
 * refusal names the client's own field, whatever protocol cannot carry it.
 */

/** How a model is spoken to; the name of an upstream's `protocol` in the configuration. */
export type Protocol = "chat" | "messages" | "responses" | "google" | "bedrock"

/** The families of models whose signatures of thoughts fit each other: who has signed, and can read it again. */
export type Signer = "anthropic" | "openai" | "google" | "unknown"

/** How long the vendor is asked to keep the prompt up to here. */
export type CacheMark = "5m" | "1h"

export interface TextPart {
  readonly type: "text"
  readonly at: string
  readonly text: string
  readonly cache: CacheMark | undefined
}

/** Bytes in base64 with their media type, or an address. */
export type Source =
  | { readonly type: "data"; readonly media_type: string; readonly data: string }
  | { readonly type: "url"; readonly url: string }

export interface ImagePart {
  readonly type: "image"
  readonly at: string
  readonly source: Source
  /** `low`, `high`, `auto`, ...: how closely OpenAI's models look at it. */
  readonly detail: string | undefined
  readonly cache: CacheMark | undefined
}

/** A file that is read: a PDF, a text. */
export interface DocumentPart {
  readonly type: "document"
  readonly at: string
  /** A plain text is `text`, without base64. */
  readonly source: Source | { readonly type: "text"; readonly text: string }
  readonly name: string | undefined
  readonly context: string | undefined
  readonly cache: CacheMark | undefined
}

export interface AudioPart {
  readonly type: "audio"
  readonly at: string
  /** In base64. */
  readonly data: string
  /** `wav`, `mp3`, ... */
  readonly format: string
}

/** A thought of the model. One without text holds only what its vendor wants back: an encrypted or redacted thought, or a signature. */
export interface ThinkingPart {
  readonly type: "thinking"
  readonly at: string
  readonly text: string
  /** The vendor's token to return with it: a signature, or the encrypted thought. */
  readonly signature: string | undefined
  readonly signer: Signer
  /** `signature` is the whole thought, which only the vendor can read (`redacted_thinking`). */
  readonly redacted: boolean
}

export interface ToolCallPart {
  readonly type: "tool_call"
  readonly at: string
  readonly id: string
  readonly name: string
  /** As the model wrote them: JSON of an object, unless it is `custom` or the model was wrong. An empty text is no arguments. */
  readonly arguments: string
  /** A call of a tool that takes a text, not JSON. */
  readonly custom: boolean
  readonly cache: CacheMark | undefined
}

export interface ToolResultPart {
  readonly type: "tool_result"
  readonly at: string
  /** The id of its call. */
  readonly id: string
  readonly content: ReadonlyArray<TextPart | ImagePart | DocumentPart>
  readonly is_error: boolean
  readonly cache: CacheMark | undefined
}

/** A model's refusal instead of an answer. */
export interface RefusalPart {
  readonly type: "refusal"
  readonly at: string
  readonly text: string
}

export type UserPart = TextPart | ImagePart | DocumentPart | AudioPart | ToolResultPart
export type AssistantPart = TextPart | ThinkingPart | ToolCallPart | RefusalPart

/**
 * One turn. Two of the same role may follow each other; a writer whose protocol wants them to alternate joins them (`joined`). A turn
 * may have no part. Results of tools stand in user turns.
 */
export type Turn =
  | { readonly role: "system" | "developer"; readonly at: string; readonly parts: ReadonlyArray<TextPart> }
  | { readonly role: "user"; readonly at: string; readonly parts: ReadonlyArray<UserPart> }
  | { readonly role: "assistant"; readonly at: string; readonly parts: ReadonlyArray<AssistantPart> }

export type JsonObject = Readonly<Record<string, unknown>>

export type Tool =
  | {
      readonly type: "function"
      readonly at: string
      readonly name: string
      readonly description: string | undefined
      /** JSON Schema of an object; `undefined`: it takes no arguments. */
      readonly parameters: JsonObject | undefined
      readonly strict: boolean | undefined
      readonly cache: CacheMark | undefined
    }
  | {
      /** It takes a text, perhaps of a grammar (OpenAI). */
      readonly type: "custom"
      readonly at: string
      readonly name: string
      readonly description: string | undefined
      readonly format: JsonObject | undefined
    }

export type ToolChoice =
  | { readonly type: "auto" | "none" | "any" }
  | { readonly type: "tool"; readonly name: string; readonly custom: boolean }
  /** One of these, or perhaps none (`auto`). */
  | { readonly type: "allowed"; readonly mode: "auto" | "any"; readonly names: ReadonlyArray<string> }

export type ResponseFormat =
  | { readonly type: "json" }
  | {
      readonly type: "schema"
      readonly name: string | undefined
      readonly description: string | undefined
      readonly schema: JsonObject
      readonly strict: boolean | undefined
    }

/** How much a model is to think. */
export type Effort = "minimal" | "low" | "medium" | "high" | "xhigh" | "max"

export interface Reasoning {
  /** Not at all. */
  readonly off: boolean
  readonly effort: Effort | undefined
  /** In tokens; a vendor that knows only efforts is told the nearest. */
  readonly budget: number | undefined
  /** The model decides how much it thinks (`adaptive`). */
  readonly adaptive: boolean
  /** Whether thoughts are shown, or in which way (`auto`, `concise`, `detailed`); `undefined`: as the vendor does. */
  readonly summary: boolean | string | undefined
}

/** The client's names of fields that are called otherwise elsewhere, for refusals. */
export interface FieldNames {
  readonly turns: string
  readonly tools: string
  readonly tool_choice: string
  readonly parallel: string
  readonly limit: string
  readonly stop: string
  readonly format: string
  readonly reasoning: string
}

/** A request to a model. `undefined` is what the client did not say. */
export interface Conversation {
  /** The protocol of the request. */
  readonly protocol: Protocol
  readonly names: FieldNames
  readonly model: string
  readonly turns: ReadonlyArray<Turn>
  readonly tools: ReadonlyArray<Tool>
  readonly tool_choice: ToolChoice | undefined
  /** Whether several tools may be called at once. */
  readonly parallel_tool_calls: boolean | undefined
  /** The most tokens of the answer, thoughts included. */
  readonly limit: number | undefined
  readonly temperature: number | undefined
  readonly top_p: number | undefined
  readonly top_k: number | undefined
  readonly stop: ReadonlyArray<string>
  readonly seed: number | undefined
  readonly frequency_penalty: number | undefined
  readonly presence_penalty: number | undefined
  readonly format: ResponseFormat | undefined
  readonly reasoning: Reasoning | undefined
  readonly verbosity: string | undefined
  /** The whole prompt is to be kept: Anthropic's `cache_control` of the request. */
  readonly cache: CacheMark | undefined
  /** Which prompts are alike, for OpenAI's cache. */
  readonly prompt_cache_key: string | undefined
  /** Who asks, by the client's own name for them. */
  readonly user: string | undefined
  readonly safety_identifier: string | undefined
  readonly stream: boolean
  /** Whether the client wants the usage at the end of a stream; protocols that always show it say `true`. */
  readonly include_usage: boolean
}
