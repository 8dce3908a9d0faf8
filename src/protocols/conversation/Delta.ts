/**
 * One step of a streamed response, in a form common to all protocols.
 *
 * A stream consists of `start`, then parts, then `stop`, then `end`. `usage` can occur anywhere and reports all figures so far. A part begins with
 * its `*_start`, continues with `piece` and `signature` deltas, and ends with `part_end`. Parts are numbered from 0 in the order they start. Several
 * parts can be open at once, because the arguments of tool calls can interleave. A broken stream ends with `failure` instead of `end` and can leave
 * parts open. `end` or `failure` is always last.
 */
import type { Signer } from "./Conversation.ts"
import type { Usage } from "./Usage.ts"

/**
 * The reason why a model stopped. `end`: the response is complete. `tool`: it calls tools. `length`: it reached the token limit. `sequence`: it
 * produced a stop sequence. `refusal`: the model or a filter refused. `pause`: the vendor paused and expects a request to continue.
 */
export type StopReason = "end" | "tool" | "length" | "sequence" | "refusal" | "pause"

export type FailureKind = "overloaded" | "rate_limit" | "invalid_request" | "vendor"

export interface Failure {
  readonly kind: FailureKind
  /** The vendor's or the service's message, for the operator. */
  readonly message: string
}

export type Delta =
  /** `id` and `model` are the vendor's. `usage` contains the prompt's usage if the vendor reports it this early. */
  | {
      readonly type: "start"
      readonly id: string | undefined
      readonly model: string | undefined
      readonly usage: Usage | undefined
    }
  | { readonly type: "text_start" | "refusal_start"; readonly index: number }
  | { readonly type: "thinking_start"; readonly index: number; readonly signer: Signer; readonly redacted: boolean }
  | {
      readonly type: "tool_start"
      readonly index: number
      /** The call's id, or empty if the vendor sends none. */
      readonly id: string
      readonly name: string
      readonly custom: boolean
    }
  /** A fragment of text, a refusal, reasoning, or a tool call's arguments. */
  | { readonly type: "piece"; readonly index: number; readonly text: string }
  /** A fragment of a reasoning signature or of redacted reasoning. */
  | { readonly type: "signature"; readonly index: number; readonly text: string }
  | { readonly type: "part_end"; readonly index: number }
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "stop"; readonly reason: StopReason; readonly sequence: string | undefined }
  | { readonly type: "failure"; readonly failure: Failure }
  | { readonly type: "end" }
