/** The embedding and rerank calls' tasks for the long-body thread, and their results. `ThreadWork` performs them. */
import type { LongMember } from "../prompts/Prompt.ts"
import type { Refusal, Task } from "../threads/Task.ts"

/** The route's name in usage records and in upstream addresses. */
export type SingleProtocol = "embeddings" | "rerank"

/** Reads a request. */
export interface ReadTask extends Task<ReadDone> {
  readonly how: `read_${SingleProtocol}`
}

export interface ReadDone {
  /** The request's JSON, handed back to the main thread. */
  readonly body: Uint8Array
  /** The request's parts, or `undefined` if it is not JSON. */
  readonly parts: RequestParts | undefined
  readonly refusal: Refusal | undefined
}

export interface RequestParts {
  /** The request's JSON with short values of the same types instead of the long members. */
  readonly value: string
  readonly members: ReadonlyArray<LongMember>
  /** Facts derived from the long members. Each protocol defines them. */
  readonly facts: unknown
}

/** Adds requested parts that an upstream omitted to its response. `beside` is the request's JSON, if it is needed. */
export interface CompleteTask extends Task<CompleteDone> {
  readonly how: `complete_${SingleProtocol}`
}

export interface CompleteDone {
  readonly bytes: Uint8Array
}
