/** What a model answered, whole, in one form for all protocols; and how it follows from the steps of a stream. */
import type { Signer } from "./Conversation.ts"
import type { StopReason } from "./Delta.ts"
import type { Usage } from "./Usage.ts"

export type AnswerPart =
  | { readonly type: "text" | "refusal"; readonly text: string }
  | {
      readonly type: "thinking"
      readonly text: string
      readonly signature: string | undefined
      readonly signer: Signer
      readonly redacted: boolean
    }
  | {
      readonly type: "tool_call"
      /** Empty where the vendor gives none. */
      readonly id: string
      readonly name: string
      /** As the model wrote them: JSON of an object, unless it is `custom` or the model was wrong. */
      readonly arguments: string
      readonly custom: boolean
    }

export interface Answer {
  /** The vendor's id of the answer, and its name of the model. */
  readonly id: string | undefined
  readonly model: string | undefined
  readonly parts: ReadonlyArray<AnswerPart>
  readonly stop: StopReason
  /** The stop sequence that it came to, where the vendor says it. */
  readonly stop_sequence: string | undefined
  /** `undefined` where the vendor reports none. */
  readonly usage: Usage | undefined
}
