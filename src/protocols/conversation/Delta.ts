/**
 * A step of a streamed answer, in a common form for all protocols.
 *
 * A stream is `start`, then parts, then `stop`, then `end`. `usage` may occur anywhere and has all figures so far. A part begins with its `*_start`,
 * continues with `piece` deltas, and ends with `part_end`. Parts are numbered from 0 in the order of their starts. Several parts may be open
 * concurrently (tool calls with interleaved arguments). A broken stream ends with `failure` instead of `end`, possibly with open parts. `end` or
 * `failure` is always last.
 */
import type { Signer } from "./Conversation.ts"
import type { Usage } from "./Usage.ts"

/**
 * The reason why a model stopped: the answer is complete (`end`), it calls tools (`tool`), it reached its limit (`length`), a stop sequence occurred
 * (`sequence`), the model or a filter refused (`refusal`), or the vendor paused and expects a request to continue (`pause`).
 */
export type StopReason = "end" | "tool" | "length" | "sequence" | "refusal" | "pause"

/** The kind of a vendor's failure. */
export type FailureKind = "overloaded" | "rate_limit" | "invalid_request" | "vendor"

export interface Failure {
  readonly kind: FailureKind
  /** The vendor's message or the service's. An operator may see it. The caller decides whether a client sees it. */
  readonly message: string
}

export type Delta =
  /** The vendor's answer id and model name, and the usage if the vendor reports prompt usage at the start. */
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
      /** The call's id. Empty if the vendor sends none. */
      readonly id: string
      readonly name: string
      readonly custom: boolean
    }
  /** A fragment of a text, a refusal, a thought, or a tool call's arguments. */
  | { readonly type: "piece"; readonly index: number; readonly text: string }
  /** A fragment of a thought's signature or of a redacted thought. */
  | { readonly type: "signature"; readonly index: number; readonly text: string }
  | { readonly type: "part_end"; readonly index: number }
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "stop"; readonly reason: StopReason; readonly sequence: string | undefined }
  | { readonly type: "failure"; readonly failure: Failure }
  | { readonly type: "end" }
