/**
 * A request to a model, in a form common to all protocols. Each protocol is read into this form and written from it.
 *
 * Field names follow the majority of protocols. Each part records its path in the client's body (`at`), because a refusal must identify the client's
 * own field.
 */

/** A wire protocol of models. The configuration of upstreams uses the same names. */
export type Protocol = "chat" | "messages" | "responses" | "google" | "bedrock"

/** A family of models that can verify each other's signed thoughts. */
export type Signer = "anthropic" | "openai" | "google" | "unknown"

/** How long the prompt up to this point should be cached. */
export type CacheMark = "5m" | "1h"

export interface TextPart {
  readonly type: "text"
  readonly at: string
  readonly text: string
  readonly cache: CacheMark | undefined
}

export type Source =
  | { readonly type: "data"; readonly media_type: string; readonly data: string }
  | { readonly type: "url"; readonly url: string }

export interface ImagePart {
  readonly type: "image"
  readonly at: string
  readonly source: Source
  /** The image resolution for OpenAI's models: `low`, `high`, `auto` and so on. */
  readonly detail: string | undefined
  readonly cache: CacheMark | undefined
}

/** A file for the model to read: a PDF or text. */
export interface DocumentPart {
  readonly type: "document"
  readonly at: string
  /** The content. The type `text` means plain text rather than base64. */
  readonly source: Source | { readonly type: "text"; readonly text: string }
  readonly name: string | undefined
  readonly context: string | undefined
  readonly cache: CacheMark | undefined
}

export interface AudioPart {
  readonly type: "audio"
  readonly at: string
  /** Base64. */
  readonly data: string
  /** Such as `wav` or `mp3`. */
  readonly format: string
}

/** A thought of a model. A thought without text contains only the vendor's data: an encrypted or redacted thought, or a signature. */
export interface ThinkingPart {
  readonly type: "thinking"
  readonly at: string
  readonly text: string
  /** The data to send back to the vendor: a signature or the encrypted thought. */
  readonly signature: string | undefined
  readonly signer: Signer
  /** Whether `signature` is the complete thought, readable only by the vendor (`redacted_thinking`). */
  readonly redacted: boolean
}

export interface ToolCallPart {
  readonly type: "tool_call"
  readonly at: string
  readonly id: string
  readonly name: string
  /** The arguments as the model wrote them: a JSON object, unless the call is `custom` or the model made a mistake. Empty if there are none. */
  readonly arguments: string
  /** Whether the tool accepts text rather than JSON. */
  readonly custom: boolean
  readonly cache: CacheMark | undefined
}

export interface ToolResultPart {
  readonly type: "tool_result"
  readonly at: string
  /** The id of the tool call that produced this result. */
  readonly id: string
  readonly content: ReadonlyArray<TextPart | ImagePart | DocumentPart>
  readonly is_error: boolean
  readonly cache: CacheMark | undefined
}

/** A refusal that the model wrote. (A filter's refusal is a stop reason without text.) */
export interface RefusalPart {
  readonly type: "refusal"
  readonly at: string
  readonly text: string
}

export type UserPart = TextPart | ImagePart | DocumentPart | AudioPart | ToolResultPart
export type AssistantPart = TextPart | ThinkingPart | ToolCallPart | RefusalPart

/**
 * Consecutive turns can have the same role. `alternating` joins them for protocols that require alternation. A turn can have no parts. Tool results
 * belong to user turns.
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
      /** The JSON Schema of the arguments, or `undefined` if the tool accepts none. */
      readonly parameters: JsonObject | undefined
      readonly strict: boolean | undefined
      readonly cache: CacheMark | undefined
    }
  | {
      /** A tool that accepts text, possibly with a grammar (OpenAI). */
      readonly type: "custom"
      readonly at: string
      readonly name: string
      readonly description: string | undefined
      readonly format: JsonObject | undefined
    }

export type ToolChoice =
  | { readonly type: "auto" | "none" | "any" }
  | { readonly type: "tool"; readonly name: string; readonly custom: boolean }
  /** Restricts calls to these tools. With `auto`, the model can also call no tool. */
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

export type Effort = "minimal" | "low" | "medium" | "high" | "xhigh" | "max"

export interface Reasoning {
  readonly off: boolean
  readonly effort: Effort | undefined
  /** The budget in tokens. A vendor that supports only efforts gets an effort instead (`effortOf`). */
  readonly budget: number | undefined
  /** Whether the model decides how much to reason (`adaptive`). */
  readonly adaptive: boolean
  /** Whether to show thoughts, or the style of their summary (`auto`, `concise` or `detailed`). `undefined` means the vendor's default. */
  readonly summary: boolean | string | undefined
}

/** The client protocol's names for fields that have different names in other protocols. Refusals use these names. */
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
  /** The protocol of the client's request. */
  readonly protocol: Protocol
  readonly names: FieldNames
  readonly model: string
  readonly turns: ReadonlyArray<Turn>
  readonly tools: ReadonlyArray<Tool>
  readonly tool_choice: ToolChoice | undefined
  readonly parallel_tool_calls: boolean | undefined
  /** The maximum number of tokens in the answer, including thoughts. */
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
  /** How long to cache the complete prompt (Anthropic's `cache_control` on the request). */
  readonly cache: CacheMark | undefined
  /** The key that OpenAI's cache uses to group similar prompts. */
  readonly prompt_cache_key: string | undefined
  /** The client's id for the end user. */
  readonly user: string | undefined
  readonly safety_identifier: string | undefined
  readonly stream: boolean
  /** Whether the client wants the usage at the end of a stream. Always `true` for protocols that always send it. */
  readonly include_usage: boolean
}
