/**
 * Reads and writes complete Messages responses. Streams use the same stop reasons and errors.
 *
 * Where the specification is silent:
 * - `model_context_window_exceeded` becomes `length`. A refusal with text from the model becomes text with the stop reason `refusal`.
 * - Blocks of an unknown type are ignored. Requests with the vendor's tools are rejected.
 */
import { Either } from "effect"
import type { Answer, AnswerPart } from "../conversation/Answer.ts"
import type { JsonObject } from "../conversation/Conversation.ts"
import type { Failure, FailureKind, StopReason } from "../conversation/Delta.ts"
import { isDeep, isObject, listOf, objectOf, text, textOr, wordsOr } from "../conversation/Json.ts"
import { stopWith } from "../conversation/Stream.ts"
import { homeSigners } from "../conversation/Thoughts.ts"
import { argumentsOf, callId, inputOf } from "../conversation/ToolCalls.ts"
import type { AnswerOptions } from "../conversation/Translation.ts"
import { noUsage } from "../conversation/Usage.ts"
import { writeThinking } from "./Blocks.ts"
import { usageOf, writeUsage } from "./Usage.ts"

const reasons: ReadonlyMap<unknown, StopReason> = new Map([
  ["end_turn", "end"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["stop_sequence", "sequence"],
  ["tool_use", "tool"],
  ["pause_turn", "pause"],
  ["refusal", "refusal"]
])

export const readStop = (reason: unknown): StopReason | undefined => reasons.get(reason)

const words: Readonly<Record<StopReason, string>> = {
  end: "end_turn",
  length: "max_tokens",
  sequence: "stop_sequence",
  tool: "tool_use",
  pause: "pause_turn",
  refusal: "refusal"
}

export const writeStop = (reason: StopReason, refused: boolean): string =>
  words[refused && reason === "end" ? "refusal" : reason]

const kinds: ReadonlyMap<unknown, FailureKind> = new Map([
  ["overloaded_error", "overloaded"],
  ["rate_limit_error", "rate_limit"],
  ["invalid_request_error", "invalid_request"]
])

/** Reads the failure from an object `{ "error": { "type": …, "message": … } }`. */
export const failureOf = (json: JsonObject): Failure => {
  const { message, type } = objectOf(json.error)
  return { kind: kinds.get(type) ?? "vendor", message: wordsOr(message, "the upstream sent an error") }
}

const types: Readonly<Record<FailureKind, string>> = {
  overloaded: "overloaded_error",
  rate_limit: "rate_limit_error",
  invalid_request: "invalid_request_error",
  vendor: "api_error"
}

export const writeFailure = ({ kind, message }: Failure): JsonObject => ({
  type: "error",
  error: { type: types[kind], message }
})

const readPart = (block: unknown): ReadonlyArray<AnswerPart> => {
  if (!isObject(block)) return []
  switch (block.type) {
    case "text":
      return [{ type: "text", text: textOr(block.text, "") }]
    case "thinking": {
      const signature = textOr(block.signature, "")
      return [
        {
          type: "thinking",
          text: textOr(block.thinking, ""),
          signature: signature === "" ? undefined : signature,
          signer: homeSigners.messages,
          redacted: false
        }
      ]
    }
    case "redacted_thinking":
      return [
        { type: "thinking", text: "", signature: textOr(block.data, ""), signer: homeSigners.messages, redacted: true }
      ]
    case "tool_use":
      return [
        {
          type: "tool_call",
          id: textOr(block.id, ""),
          name: textOr(block.name, ""),
          arguments: argumentsOf(block.input) ?? "{}",
          custom: false
        }
      ]
    default:
      return []
  }
}

export const readAnswer = (json: unknown): Either.Either<Answer, Failure> => {
  if (!isObject(json)) return Either.left({ kind: "vendor", message: "the upstream's response is not a JSON object" })
  if (json.type === "error" || isObject(json.error)) return Either.left(failureOf(json))
  if (!Array.isArray(json.content))
    return Either.left({ kind: "vendor", message: "the upstream's response contains no content" })
  if (isDeep(json)) return Either.left({ kind: "vendor", message: "the upstream's response is nested too deeply" })
  const parts = listOf(json.content).flatMap(readPart)
  return Either.right({
    id: text(json.id),
    model: text(json.model),
    parts,
    stop: stopWith(
      readStop(json.stop_reason),
      parts.some((part) => part.type === "tool_call")
    ),
    stop_sequence: text(json.stop_sequence),
    usage: usageOf(json.usage)
  })
}

const writePart = (part: AnswerPart, id: string, index: number): JsonObject => {
  switch (part.type) {
    case "text":
    case "refusal":
      return { type: "text", text: part.text }
    case "thinking":
      return writeThinking(part)
    case "tool_call":
      return {
        type: "tool_use",
        id: callId(part.id, id, index),
        name: part.name,
        input: part.custom ? { input: part.arguments } : inputOf(part.arguments)
      }
  }
}

export const writeAnswer = (answer: Answer, { id, model }: AnswerOptions): JsonObject => ({
  id: `msg_${id}`,
  type: "message",
  role: "assistant",
  model,
  content: answer.parts.map((part, index) => writePart(part, id, index)),
  stop_reason: writeStop(
    answer.stop,
    answer.parts.some((part) => part.type === "refusal")
  ),
  stop_sequence: answer.stop_sequence ?? null,
  usage: writeUsage(answer.usage ?? noUsage)
})
