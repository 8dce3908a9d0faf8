/**
 * A request to a model, in one form for all protocols. Each protocol is read into it and written from it.
 *
 * Names shared by several protocols are kept. Each part has its path in the client's body (`at`), so that a refusal names the client's own
 * field, whatever the upstream's protocol.
 */

/** A wire protocol of models; the name of an upstream's `protocol` in the configuration. */
export type Protocol = "chat" | "messages" | "responses" | "google" | "bedrock"

/** A family of models that can verify each other's signed thoughts. */
export type Signer = "anthropic" | "openai" | "google" | "unknown"

/** How long the vendor should cache the prompt up to this point. */
export type CacheMark = "5m" | "1h"

export interface TextPart {
  readonly type: "text"
  readonly at: string
  readonly text: string
  readonly cache: CacheMark | undefined
}

/** Base64 data with its media type, or an address. */
export type Source =
  | { readonly type: "data"; readonly media_type: string; readonly data: string }
  | { readonly type: "url"; readonly url: string }

export interface ImagePart {
  readonly type: "image"
  readonly at: string
  readonly source: Source
  /** `low`, `high`, `auto`, ...: the image resolution for OpenAI's models. */
  readonly detail: string | undefined
  readonly cache: CacheMark | undefined
}

/** A file to read: a PDF or text. */
export interface DocumentPart {
  readonly type: "document"
  readonly at: string
  /** `text` is plain text, without base64. */
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

/** A thought of the model. Without text, it only carries data for its vendor: an encrypted or redacted thought, or a signature. */
export interface ThinkingPart {
  readonly type: "thinking"
  readonly at: string
  readonly text: string
  /** The vendor's data to return with it: a signature, or the encrypted thought. */
  readonly signature: string | undefined
  readonly signer: Signer
  /** Whether `signature` is the whole thought, readable only by the vendor (`redacted_thinking`). */
  readonly redacted: boolean
}

export interface ToolCallPart {
  readonly type: "tool_call"
  readonly at: string
  readonly id: string
  readonly name: string
  /** The model's own text: a JSON object, unless it is `custom` or the model made an error. Empty for no arguments. */
  readonly arguments: string
  /** Whether the tool takes text instead of JSON. */
  readonly custom: boolean
  readonly cache: CacheMark | undefined
}

export interface ToolResultPart {
  readonly type: "tool_result"
  readonly at: string
  /** The id of the tool call. */
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
 * One turn. Consecutive turns may have the same role; `alternating` joins them for protocols that require alternation. A turn may have no parts.
 * Tool results belong to user turns.
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
      /** JSON Schema of an object; `undefined` if the tool takes no arguments. */
      readonly parameters: JsonObject | undefined
      readonly strict: boolean | undefined
      readonly cache: CacheMark | undefined
    }
  | {
      /** A tool that takes text, possibly with a grammar (OpenAI). */
      readonly type: "custom"
      readonly at: string
      readonly name: string
      readonly description: string | undefined
      readonly format: JsonObject | undefined
    }

export type ToolChoice =
  | { readonly type: "auto" | "none" | "any" }
  | { readonly type: "tool"; readonly name: string; readonly custom: boolean }
  /** One of these tools, or possibly none (`auto`). */
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

/** The amount of reasoning. */
export type Effort = "minimal" | "low" | "medium" | "high" | "xhigh" | "max"

export interface Reasoning {
  /** Whether reasoning is disabled. */
  readonly off: boolean
  readonly effort: Effort | undefined
  /** In tokens. A vendor that supports only efforts gets the nearest effort. */
  readonly budget: number | undefined
  /** Whether the model decides how much to reason (`adaptive`). */
  readonly adaptive: boolean
  /** Whether thoughts are shown, or their style (`auto`, `concise`, `detailed`); `undefined` for the vendor's default. */
  readonly summary: boolean | string | undefined
}

/** The client protocol's names of fields that differ between protocols, for refusals. */
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

/** A request to a model. `undefined` means that the client did not set the field. */
export interface Conversation {
  /** The protocol of the request. */
  readonly protocol: Protocol
  readonly names: FieldNames
  readonly model: string
  readonly turns: ReadonlyArray<Turn>
  readonly tools: ReadonlyArray<Tool>
  readonly tool_choice: ToolChoice | undefined
  /** Whether tools may be called in parallel. */
  readonly parallel_tool_calls: boolean | undefined
  /** The maximum number of tokens in the answer, thoughts included. */
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
  /** Caching of the whole prompt: Anthropic's `cache_control` of the request. */
  readonly cache: CacheMark | undefined
  /** Groups similar prompts for OpenAI's cache. */
  readonly prompt_cache_key: string | undefined
  /** The end user, by the client's own id. */
  readonly user: string | undefined
  readonly safety_identifier: string | undefined
  readonly stream: boolean
  /** Whether the client wants the usage at the end of a stream; `true` for protocols that always send it. */
  readonly include_usage: boolean
}
