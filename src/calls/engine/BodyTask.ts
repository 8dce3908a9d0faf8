/** The engine's tasks for the long-body thread, and their results. `ThreadWork` performs them. */
import type { AnswerOptions } from "../../protocols/conversation/Translation.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import type { ClientProtocol, ProtocolName } from "../../upstream/models/Protocol.ts"
import type { ModelRoute } from "../prompts/Model.ts"
import type { Refusal, Task } from "../threads/Task.ts"
import type { PromptParts } from "./PromptParts.ts"

export interface CountTask extends Task<AnswerDone> {
  readonly how: "count"
  readonly client: ClientProtocol
}

export interface TranslateTask extends Task<AnswerDone> {
  readonly how: "translate"
  readonly client: ClientProtocol
  readonly vendor: ProtocolName
  readonly options: AnswerOptions
}

/** The routes that accept a prompt: one for each client protocol, and the token count of the Messages protocol. */
export type PromptRoute = ClientProtocol | "count_tokens"

/** Reads a prompt. The thread caches the last prompt, so that translating it does not require parsing it again. */
export interface ReadTask extends Task<ReadDone> {
  readonly how: "read"
  /** Identifies the prompt for a later `WriteTask`. */
  readonly prompt: number
  readonly route: PromptRoute
}

/** Translates a prompt for a vendor. `body` is the client's JSON. */
export interface WriteTask extends Task<WriteDone> {
  readonly how: "write"
  readonly prompt: number
  readonly client: ClientProtocol
  readonly vendor: ProtocolName
  readonly route: Pick<ModelRoute, "model" | "limit_field">
  readonly limit: number | undefined
  readonly stream: boolean
  /** Whether the upstream requires the translation's hash. */
  readonly hashes: boolean
}

/** The result of reading a response. */
export interface AnswerDone {
  /** The defect that makes the response unusable. If it is set, the other members are empty. */
  readonly fault: string | undefined
  /** The response in the client's protocol, or empty if its tokens were only counted. */
  readonly bytes: Uint8Array
  /** The hash of `bytes`, or empty if they are empty. */
  readonly hash: string
  readonly usage: Usage | undefined
  readonly tokens_counted: number
  /** The ids in a response that was not translated. */
  readonly ids: ReadonlyArray<string>
}

export interface ReadDone {
  /** The prompt's JSON, handed back to the main thread. */
  readonly body: Uint8Array
  /** The hash of the JSON if the prompt is valid, otherwise empty. */
  readonly hash: string
  /** The prompt's parts, if it is valid. */
  readonly parts: PromptParts | undefined
  /** The reason why the prompt is invalid. */
  readonly refusal: Refusal | undefined
}

export interface WriteDone {
  /** The prompt's JSON, handed back to the main thread. */
  readonly body: Uint8Array
  /** The vendor's request body. */
  readonly bytes: Uint8Array | undefined
  /** The SHA-256 of `bytes`, in hexadecimal, if the task requires it. */
  readonly sha256: string | undefined
  readonly refusal: Refusal | undefined
}
