/**
 * Reads and writes complete chat completions. Streams use the same stop reasons and errors.
 *
 * Where the specification is silent:
 * - If there are several choices, the first is used. A choice that ends with `error` is a failure.
 * - A refusal becomes `content_filter`, and a vendor's pause becomes `stop`.
 */
import { Either } from "effect"
import type { Answer, AnswerPart } from "../conversation/Answer.ts"
import type { JsonObject } from "../conversation/Conversation.ts"
import type { Failure, FailureKind, StopReason } from "../conversation/Delta.ts"
import { isObject, listOf, objectOf, present, text, textOr, wordsOr } from "../conversation/Json.ts"
import { stopWith } from "../conversation/Stream.ts"
import { callId } from "../conversation/ToolCalls.ts"
import type { AnswerOptions } from "../conversation/Translation.ts"
import { writeCall } from "./Parts.ts"
import { reasoningOf, writeThoughts } from "./Thoughts.ts"
import type { ReasoningPart } from "./Thoughts.ts"
import { usageOf, writeUsage } from "./Usage.ts"

const reasons: ReadonlyMap<unknown, StopReason> = new Map([
  ["stop", "end"],
  ["length", "length"],
  ["tool_calls", "tool"],
  ["function_call", "tool"],
  ["content_filter", "refusal"]
])

export const readStop = (reason: unknown): StopReason | undefined => reasons.get(reason)

const words: Readonly<Record<StopReason, string>> = {
  end: "stop",
  length: "length",
  sequence: "stop",
  tool: "tool_calls",
  pause: "stop",
  refusal: "content_filter"
}

export const writeStop = (reason: StopReason): string => words[reason]

/** Reads the failure from the member `error`, which is an object or a string. */
export const failureOf = (error: unknown): Failure => {
  if (!isObject(error)) return { kind: "vendor", message: wordsOr(error, "the upstream sent an error") }
  const { code, message, type } = error
  return { kind: kindOf([code, type]), message: wordsOr(message, "the upstream sent an error") }
}

/** Classifies a failure by its error code and type. Some vendors use the HTTP status as the code. */
const kindOf = (words: ReadonlyArray<unknown>): FailureKind => {
  for (const word of words) {
    const name = String(word)
    if (name === "429" || name.startsWith("rate_limit")) return "rate_limit"
    if (name === "503" || name === "529" || name.includes("overloaded")) return "overloaded"
    if (name === "400" || name.startsWith("invalid_request")) return "invalid_request"
  }
  return "vendor"
}

export const isFailure = (error: unknown): boolean => error !== undefined && error !== null

/** Returns the text in `content`, which is a string or an array of parts. */
export const textsIn = (content: unknown): string =>
  typeof content === "string"
    ? content
    : listOf(content)
        .map((part) => textOr(objectOf(part).text, ""))
        .join("")

const readCall = (call: unknown): ReadonlyArray<AnswerPart> => {
  if (!isObject(call)) return []
  const custom = call.type === "custom"
  const what = objectOf(custom ? call.custom : call.function)
  return [
    {
      type: "tool_call",
      id: textOr(call.id, ""),
      name: textOr(what.name, ""),
      arguments: textOr(custom ? what.input : what.arguments, ""),
      custom
    }
  ]
}

const said = (type: "text" | "refusal", value: string): ReadonlyArray<AnswerPart> =>
  value === "" ? [] : [{ type, text: value }]

export const readAnswer = (json: unknown): Either.Either<Answer, Failure> => {
  if (!isObject(json)) return Either.left({ kind: "vendor", message: "the upstream's response is not a JSON object" })
  if (isFailure(json.error)) return Either.left(failureOf(json.error))
  const choice = listOf(json.choices)[0]
  if (!isObject(choice) || !isObject(choice.message))
    return Either.left({ kind: "vendor", message: "the upstream's response contains no message" })
  if (choice.finish_reason === "error") return Either.left(failureOf(choice.error))
  const { message } = choice
  const parts = [
    ...reasoningOf(message, "vendor"),
    ...said("text", textsIn(message.content)),
    ...said("refusal", textOr(message.refusal, "")),
    ...listOf(message.tool_calls).flatMap(readCall)
  ]
  return Either.right({
    id: text(json.id),
    model: text(json.model),
    parts,
    stop: stopWith(
      readStop(choice.finish_reason),
      parts.some((part) => part.type === "tool_call")
    ),
    stop_sequence: undefined,
    usage: usageOf(json.usage, json.id)
  })
}

const joinedTexts = (parts: ReadonlyArray<AnswerPart>, type: "text" | "refusal"): string | null => {
  const texts = parts.flatMap((part) => (part.type === type ? [part.text] : []))
  return texts.length === 0 ? null : texts.join("")
}

export const writeAnswer = (answer: Answer, { created, id, model }: AnswerOptions): JsonObject => {
  const { parts, stop, usage } = answer
  const calls = parts.flatMap((part, index) =>
    part.type === "tool_call" ? [writeCall({ ...part, id: callId(part.id, id, index) })] : []
  )
  const message = present({
    role: "assistant",
    content: joinedTexts(parts, "text") ?? (calls.length === 0 ? "" : null),
    refusal: joinedTexts(parts, "refusal"),
    ...writeThoughts(parts.filter((part): part is ReasoningPart => part.type === "thinking")),
    tool_calls: calls.length === 0 ? undefined : calls
  })
  return present({
    id: `chatcmpl-${id}`,
    object: "chat.completion",
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: writeStop(stop) }],
    usage: usage === undefined ? undefined : writeUsage(usage)
  })
}
