/**
 * Reads and writes complete responses of Bedrock's Converse. Streams use the same stop reasons and errors.
 *
 * Where the specification is silent:
 * - `guardrail_intervened` and `content_filtered` become `refusal`, and `model_context_window_exceeded` becomes `length`. Malformed output
 *   (`malformed_model_output` or `malformed_tool_use`) is a failure.
 */
import { Either } from "effect"
import type { Answer, AnswerPart } from "../conversation/Answer.ts"
import type { JsonObject } from "../conversation/Conversation.ts"
import type { Failure, FailureKind, StopReason } from "../conversation/Delta.ts"
import { isDeep, isObject, listOf, objectOf, present, text, textOr, wordsOr } from "../conversation/Json.ts"
import { stopWith } from "../conversation/Stream.ts"
import { argumentsOf, callId } from "../conversation/ToolCalls.ts"
import type { AnswerOptions } from "../conversation/Translation.ts"
import { thoughtOf, writeAssistantPart } from "./Blocks.ts"
import { usageOf, writeUsage } from "./Usage.ts"

const reasons: ReadonlyMap<unknown, StopReason> = new Map([
  ["end_turn", "end"],
  ["tool_use", "tool"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["stop_sequence", "sequence"],
  ["guardrail_intervened", "refusal"],
  ["content_filtered", "refusal"],
  ["refusal", "refusal"],
  ["pause_turn", "pause"]
])

export const readStop = (reason: unknown): StopReason | undefined => reasons.get(reason)

export const isMalformed = (reason: unknown): boolean => typeof reason === "string" && reason.startsWith("malformed_")

const words: Readonly<Record<StopReason, string>> = {
  end: "end_turn",
  length: "max_tokens",
  sequence: "stop_sequence",
  tool: "tool_use",
  pause: "pause_turn",
  refusal: "content_filtered"
}

export const writeStop = (reason: StopReason): string => words[reason]

/** Returns the stop sequence, which Claude reports in the additional response fields. */
export const sequenceOf = (fields: unknown): string | undefined => {
  const { delta, stop_sequence } = objectOf(fields)
  return text(stop_sequence) ?? text(objectOf(delta).stop_sequence)
}

const kinds: ReadonlyMap<string, FailureKind> = new Map([
  ["throttlingException", "rate_limit"],
  ["serviceUnavailableException", "overloaded"],
  ["modelNotReadyException", "overloaded"],
  ["validationException", "invalid_request"]
])

/** Converts an exception to a failure, ignoring the case of the name's first letter. */
export const failureOf = (name: string, json: JsonObject): Failure => ({
  kind: kinds.get(name.slice(0, 1).toLowerCase() + name.slice(1)) ?? "vendor",
  message: wordsOr(json.message, wordsOr(json.originalMessage, `the upstream sent ${name}`))
})

const readPart = (value: unknown): ReadonlyArray<AnswerPart> => {
  const block = objectOf(value)
  if (typeof block.text === "string") return [{ type: "text", text: block.text }]
  if (isObject(block.reasoningContent)) return [{ type: "thinking", ...thoughtOf(block.reasoningContent) }]
  if (!isObject(block.toolUse)) return []
  const { input, name, toolUseId } = block.toolUse
  return [
    {
      type: "tool_call",
      id: textOr(toolUseId, ""),
      name: textOr(name, ""),
      arguments: argumentsOf(input) ?? "{}",
      custom: false
    }
  ]
}

export const readAnswer = (json: unknown): Either.Either<Answer, Failure> => {
  if (!isObject(json)) return Either.left({ kind: "vendor", message: "the upstream's response is not a JSON object" })
  const { content } = objectOf(objectOf(json.output).message)
  if (!Array.isArray(content))
    return Either.left({
      kind: "vendor",
      message: wordsOr(json.message, "the upstream's response contains no message")
    })
  if (isDeep(json)) return Either.left({ kind: "vendor", message: "the upstream's response is nested too deeply" })
  if (isMalformed(json.stopReason))
    return Either.left({ kind: "vendor", message: `the model stopped with ${String(json.stopReason)}` })
  const parts = listOf(content).flatMap(readPart)
  return Either.right({
    id: undefined,
    model: undefined,
    parts,
    stop: stopWith(
      readStop(json.stopReason),
      parts.some((part) => part.type === "tool_call")
    ),
    stop_sequence: sequenceOf(json.additionalModelResponseFields),
    usage: usageOf(json.usage)
  })
}

export const writeAnswer = (answer: Answer, { id }: AnswerOptions): JsonObject => {
  const content = answer.parts.map((part, index) =>
    writeAssistantPart(part.type === "tool_call" ? { ...part, id: callId(part.id, id, index) } : part)
  )
  return present({
    output: { message: { role: "assistant", content } },
    stopReason: writeStop(answer.stop),
    additionalModelResponseFields:
      answer.stop_sequence === undefined ? undefined : { stop_sequence: answer.stop_sequence },
    usage: answer.usage === undefined ? undefined : writeUsage(answer.usage)
  })
}
