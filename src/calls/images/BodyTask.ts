/** The image calls' tasks for the long-body thread, and their results. `ThreadWork` performs them. */
import type { Texts } from "../threads/LongStrings.ts"
import type { Refusal, Task } from "../threads/Task.ts"
import type { ImageRequest } from "./Image.ts"
import type { Creation } from "./OpenAi.ts"

/** Reads a JSON request to the service's image route. */
export interface ReadGenerationTask extends Task<GenerationDone> {
  readonly how: "read_generation"
}

export interface GenerationDone {
  /** The valid request, with placeholders instead of its long strings. */
  readonly request: ImageRequest | undefined
  readonly texts: Texts
  readonly refusal: Refusal | undefined
}

/** Reads an edit's form. */
export interface ReadEditTask extends Task<EditDone> {
  readonly how: "read_edit"
  /** The form's content type. */
  readonly type: string
  /** Whether the form's fingerprint is needed. */
  readonly fingerprints: boolean
}

export interface EditDone {
  /** The valid edit, with placeholders instead of its long strings. */
  readonly creation: Creation | undefined
  readonly fingerprint: string | undefined
  readonly texts: Texts
  readonly refusal: Refusal | undefined
}
