/** The tasks of image calls for the thread for long bodies, and their results. `ThreadWork` does them. */
import type { Texts } from "../threads/LongStrings.ts"
import type { Refusal, Task } from "../threads/Task.ts"
import type { ImageRequest } from "./Image.ts"
import type { Creation } from "./OpenAi.ts"

/** Reads a JSON request of the service's own route. */
export interface ReadGenerationTask extends Task<GenerationDone> {
  readonly how: "read_generation"
}

export interface GenerationDone {
  /** The valid request, with short strings in place of its long ones. */
  readonly request: ImageRequest | undefined
  readonly texts: Texts
  readonly refusal: Refusal | undefined
}

/** Reads the form of an edit. */
export interface ReadEditTask extends Task<EditDone> {
  readonly how: "read_edit"
  /** The form's content type. */
  readonly type: string
  /** Whether the form's fingerprint is needed. */
  readonly fingerprints: boolean
}

export interface EditDone {
  /** The valid edit, with short strings in place of its long ones. */
  readonly creation: Creation | undefined
  readonly fingerprint: string | undefined
  readonly texts: Texts
  readonly refusal: Refusal | undefined
}
