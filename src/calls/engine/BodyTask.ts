/** The tasks of the thread for long bodies (`BodyThread`) and their results. */
import type { AnswerOptions } from "../../protocols/conversation/Translation.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import type { ClientProtocol, ProtocolName } from "../../upstream/models/Protocol.ts"
import type { ModelRoute } from "../prompts/Model.ts"
import type { PromptParts } from "./PromptParts.ts"

export interface CountTask {
  readonly how: "count"
  readonly client: ClientProtocol
  readonly body: Uint8Array
}

export interface TranslateTask {
  readonly how: "translate"
  readonly client: ClientProtocol
  readonly vendor: ProtocolName
  readonly options: AnswerOptions
  readonly body: Uint8Array
}

/** Reads a prompt. The thread keeps the last prompt that it has read, so that it need not parse it again to translate it. */
export interface ReadTask {
  readonly how: "read"
  /** Identifies the prompt for a later `WriteTask`. */
  readonly prompt: number
  readonly client: ClientProtocol
  readonly body: Uint8Array
}

/** Translates a prompt for a vendor. */
export interface WriteTask {
  readonly how: "write"
  readonly prompt: number
  readonly client: ClientProtocol
  readonly vendor: ProtocolName
  readonly route: Pick<ModelRoute, "model" | "limit_field">
  readonly limit: number | undefined
  readonly stream: boolean
  /** The client's JSON. */
  readonly body: Uint8Array
}

export type Task = CountTask | TranslateTask | ReadTask | WriteTask

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

/** The members of an `InvalidRequest`. */
export interface Refusal {
  readonly message: string
  readonly field: string
  readonly rule: string
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
  readonly refusal: Refusal | undefined
}

/** The thread could not do a task, because its code threw an error with this message. */
export interface Failed {
  readonly failed: string
}

export type Done = AnswerDone | ReadDone | WriteDone | Failed
