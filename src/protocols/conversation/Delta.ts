/**
 * One step of an answer that is streamed, in one form for all protocols.
 *
 * A stream is `start`, then parts, then `stop`, then `end`; `usage` comes anywhere, each time with all that is known until then. A
 * part begins with its `*_start`, goes on with pieces, and ends with `part_end`; parts are numbered from 0 in the order in which they
 * begin. Several parts may be open at once (tool calls whose arguments come by turns). A stream that breaks ends with `failure` instead
 * of `end`, wherever it is; parts may be open then. Nothing follows either.
 */
import type { Signer } from "./Conversation.ts"
import type { Usage } from "./Usage.ts"

/**
 * Why a model stopped: it had said all (`end`), it wants tools called (`tool`), the answer is as long as allowed (`length`), it came to a
 * stop sequence (`sequence`), it or a filter refused (`refusal`), or it wants to be asked to go on (`pause`).
 */
export type StopReason = "end" | "tool" | "length" | "sequence" | "refusal" | "pause"

/** The vendor's own kind of a failure. */
export type FailureKind = "overloaded" | "rate_limit" | "invalid_request" | "vendor"

export interface Failure {
  readonly kind: FailureKind
  /** In the vendor's words, or ours. May be shown to an operator; whether a client sees it is the caller's choice. */
  readonly message: string
}

export type Delta =
  /** The vendor's id and name of the model. A vendor that reports what the prompt used at the start says it here. */
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
      /** Empty where the vendor gives none. */
      readonly id: string
      readonly name: string
      readonly custom: boolean
    }
  /** A piece of a text, a refusal or a thought, or of the arguments of a tool call. */
  | { readonly type: "piece"; readonly index: number; readonly text: string }
  /** A piece of the signature of a thought, or of one that is redacted. */
  | { readonly type: "signature"; readonly index: number; readonly text: string }
  | { readonly type: "part_end"; readonly index: number }
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "stop"; readonly reason: StopReason; readonly sequence: string | undefined }
  | { readonly type: "failure"; readonly failure: Failure }
  | { readonly type: "end" }
