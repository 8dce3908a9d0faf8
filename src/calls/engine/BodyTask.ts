/** The tasks of the engine for the thread for long bodies, and their results. `ThreadWork` does them. */
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

/** The routes whose requests are prompts: those of the client protocols, and the one that counts a prompt's tokens in the Messages protocol. */
export type PromptRoute = ClientProtocol | "count_tokens"

/** Reads a prompt. The thread keeps the last prompt that it has read, so that it need not parse it again to translate it. */
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
  /** Whether the upstream requires the hash of the translation. */
  readonly hashes: boolean
}

/** The result of reading an answer. */
export interface AnswerDone {
  /** The defect that makes the answer unusable. If it is set, the other members are empty. */
  readonly fault: string | undefined
  /** The answer in the client's protocol, or empty if the answer was only counted. */
  readonly bytes: Uint8Array
  /** The hash of these bytes; empty if the answer was only counted. */
  readonly hash: string
  readonly usage: Usage | undefined
  readonly tokens_counted: number
  /** The ids in an answer that was not translated. */
  readonly ids: ReadonlyArray<string>
}

export interface ReadDone {
  /** The prompt's JSON, which returns to the main thread. */
  readonly body: Uint8Array
  /** The hash of the prompt's JSON, if it is valid. */
  readonly hash: string
  /** The parts of a valid prompt. */
  readonly parts: PromptParts | undefined
  /** The reason why the prompt is not valid. */
  readonly refusal: Refusal | undefined
}

export interface WriteDone {
  /** The prompt's JSON, which returns to the main thread. */
  readonly body: Uint8Array
  /** The body of the vendor's request. */
  readonly bytes: Uint8Array | undefined
  /** The SHA-256 of these bytes, in hexadecimal, if the task requires it. */
  readonly sha256: string | undefined
  readonly refusal: Refusal | undefined
}
