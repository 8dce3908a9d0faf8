/** A complete response, in a form common to all protocols, with conversions to and from stream deltas. */
import { Either } from "effect"
import type { Signer } from "./Conversation.ts"
import type { Delta, Failure, StopReason } from "./Delta.ts"
import type { Usage } from "./Usage.ts"

export type AnswerPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly text: string }
  | {
      readonly type: "thinking"
      readonly text: string
      readonly signature: string | undefined
      readonly signer: Signer
      readonly redacted: boolean
    }
  | {
      readonly type: "tool_call"
      /** The call's id, or empty if the vendor sends none. */
      readonly id: string
      readonly name: string
      /** The model's arguments: a JSON object, unless the tool is `custom` or the model made a mistake. */
      readonly arguments: string
      readonly custom: boolean
    }

export interface Answer {
  /** The vendor's response id. */
  readonly id: string | undefined
  /** The vendor's name for the model. */
  readonly model: string | undefined
  readonly parts: ReadonlyArray<AnswerPart>
  readonly stop: StopReason
  /** The stop sequence that ended the response, if the vendor reports it. */
  readonly stop_sequence: string | undefined
  readonly usage: Usage | undefined
}

interface OpenPart {
  readonly type: AnswerPart["type"]
  text: string
  signature: string | undefined
  readonly signer: Signer
  readonly redacted: boolean
  readonly id: string
  readonly name: string
  readonly custom: boolean
}

const partOf = ({ custom, id, name, redacted, signature, signer, text, type }: OpenPart): AnswerPart => {
  switch (type) {
    case "text":
    case "refusal":
      return { type, text }
    case "thinking":
      return { type, text, signature, signer, redacted }
    case "tool_call":
      return { type, id, name, arguments: text, custom }
  }
}

const blank = {
  text: "",
  signature: undefined,
  signer: "unknown",
  redacted: false,
  id: "",
  name: "",
  custom: false
} as const

/** Builds the complete response from a stream's deltas. `Left` contains the failure of a stream that failed or has not ended. */
export const answerOf = (deltas: Iterable<Delta>): Either.Either<Answer, Failure> => {
  const parts: Array<OpenPart> = []
  let id: string | undefined
  let model: string | undefined
  let usage: Usage | undefined
  let stop: StopReason = "end"
  let stop_sequence: string | undefined
  for (const delta of deltas) {
    switch (delta.type) {
      case "start":
        id = delta.id
        model = delta.model
        usage = delta.usage
        break
      case "text_start":
      case "refusal_start":
        parts[delta.index] = { ...blank, type: delta.type === "text_start" ? "text" : "refusal" }
        break
      case "thinking_start":
        parts[delta.index] = { ...blank, type: "thinking", signer: delta.signer, redacted: delta.redacted }
        break
      case "tool_start":
        parts[delta.index] = { ...blank, type: "tool_call", id: delta.id, name: delta.name, custom: delta.custom }
        break
      case "piece":
        parts[delta.index]!.text += delta.text
        break
      case "signature":
        parts[delta.index]!.signature = (parts[delta.index]!.signature ?? "") + delta.text
        break
      case "usage":
        usage = delta.usage
        break
      case "stop":
        stop = delta.reason
        stop_sequence = delta.sequence
        break
      case "failure":
        return Either.left(delta.failure)
      case "end":
        return Either.right({ id, model, parts: parts.map(partOf), stop, stop_sequence, usage })
      case "part_end":
        break
    }
  }
  return Either.left({ kind: "vendor", message: "the stream has not ended" })
}

/** Returns a complete response's deltas, with each part's content in a single delta. */
export const deltasOf = (answer: Answer): ReadonlyArray<Delta> => [
  { type: "start", id: answer.id, model: answer.model, usage: undefined },
  ...answer.parts.flatMap((part, index) => partDeltas(part, index)),
  ...(answer.usage === undefined ? [] : [{ type: "usage", usage: answer.usage } as const]),
  { type: "stop", reason: answer.stop, sequence: answer.stop_sequence },
  { type: "end" }
]

const partDeltas = (part: AnswerPart, index: number): ReadonlyArray<Delta> => {
  const text = part.type === "tool_call" ? part.arguments : part.text
  const signature = part.type === "thinking" ? part.signature : undefined
  return [
    startOf(part, index),
    ...(text === "" ? [] : [{ type: "piece", index, text } as const]),
    ...(signature === undefined ? [] : [{ type: "signature", index, text: signature } as const]),
    { type: "part_end", index }
  ]
}

const startOf = (part: AnswerPart, index: number): Delta => {
  switch (part.type) {
    case "text":
      return { type: "text_start", index }
    case "refusal":
      return { type: "refusal_start", index }
    case "thinking":
      return { type: "thinking_start", index, signer: part.signer, redacted: part.redacted }
    case "tool_call":
      return { type: "tool_start", index, id: part.id, name: part.name, custom: part.custom }
  }
}
