/**
 * Reads Gemini's complete and streamed responses, and writes complete ones. Each stream event is a response with the next parts, so one reader
 * handles both forms.
 *
 * Where the specification is silent:
 * - A blocked prompt becomes an empty response with the stop reason `refusal`. A response that a filter stopped also gets this stop reason. A
 *   malformed call (`MALFORMED_FUNCTION_CALL` and similar) is a failure.
 * - A stream has no last event. It is complete when a candidate has a finish reason. Later events are ignored, except for usage and errors.
 */
import { Either } from "effect"
import { answerOf } from "../conversation/Answer.ts"
import type { Answer } from "../conversation/Answer.ts"
import type { JsonObject } from "../conversation/Conversation.ts"
import type { Delta, Failure, FailureKind, StopReason } from "../conversation/Delta.ts"
import { isObject, listOf, objectOf, text, textOr, wordsOr } from "../conversation/Json.ts"
import { cutOff, failure, protocolViolation, stopWith, streamReader } from "../conversation/Stream.ts"
import { homeSigners } from "../conversation/Thoughts.ts"
import { argumentsOf, callId } from "../conversation/ToolCalls.ts"
import type { AnswerOptions, StreamReader } from "../conversation/Translation.ts"
import { partsOf, writeModelParts } from "./Parts.ts"
import { usageOf, writeUsage } from "./Usage.ts"

const reasons: ReadonlyMap<unknown, StopReason> = new Map([
  ["STOP", "end"],
  ["MAX_TOKENS", "length"],
  ...["SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"].map(
    (name) => [name, "refusal"] as const
  )
])

const failures: ReadonlySet<unknown> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MISSING_THOUGHT_SIGNATURE",
  "MALFORMED_RESPONSE"
])

const words: Readonly<Record<StopReason, string>> = {
  end: "STOP",
  length: "MAX_TOKENS",
  sequence: "STOP",
  tool: "STOP",
  pause: "STOP",
  refusal: "SAFETY"
}

export const writeStop = (reason: StopReason): string => words[reason]

const kinds: ReadonlyMap<unknown, FailureKind> = new Map([
  ["RESOURCE_EXHAUSTED", "rate_limit"],
  ["UNAVAILABLE", "overloaded"],
  ["INVALID_ARGUMENT", "invalid_request"],
  ["FAILED_PRECONDITION", "invalid_request"]
])

const failureOf = (error: JsonObject): Failure => ({
  kind: kinds.get(error.status) ?? "vendor",
  message: wordsOr(error.message, "the upstream sent an error")
})

class EventReader {
  #begun = false
  #parts = 0
  #open: { readonly type: "text" | "thinking"; readonly index: number } | undefined
  #calls = false
  #finished = false
  #deltas: Array<Delta> = []

  #close(): void {
    if (this.#open !== undefined) this.#deltas.push({ type: "part_end", index: this.#open.index })
    this.#open = undefined
  }

  #within(type: "text" | "thinking"): number {
    if (this.#open?.type === type) return this.#open.index
    this.#close()
    const index = this.#parts++
    this.#open = { type, index }
    this.#deltas.push(
      type === "text"
        ? { type: "text_start", index }
        : { type: "thinking_start", index, signer: homeSigners.google, redacted: false }
    )
    return index
  }

  #say(type: "text" | "thinking", piece: string): void {
    if (piece !== "") this.#deltas.push({ type: "piece", index: this.#within(type), text: piece })
  }

  /** Adds a signature to the current reasoning. Any other part's signature becomes a separate reasoning part. */
  #sign(signature: string, thought: boolean): void {
    if (!thought) this.#close()
    this.#deltas.push({ type: "signature", index: this.#within("thinking"), text: signature })
    this.#close()
  }

  #call(call: JsonObject): void {
    this.#close()
    this.#calls = true
    const index = this.#parts++
    const written = argumentsOf(call.args)
    if (written === undefined) {
      this.#deltas.push(protocolViolation("a call that is nested too deeply"))
      return
    }
    this.#deltas.push(
      { type: "tool_start", index, id: textOr(call.id, ""), name: textOr(call.name, ""), custom: false },
      { type: "piece", index, text: written },
      { type: "part_end", index }
    )
  }

  #part(part: JsonObject): void {
    const signature = text(part.thoughtSignature)
    const thought = part.thought === true
    const calls = isObject(part.functionCall)
    if (typeof part.text === "string" && !calls) this.#say(thought ? "thinking" : "text", part.text)
    if (signature !== undefined && signature !== "") this.#sign(signature, thought)
    if (isObject(part.functionCall)) this.#call(part.functionCall)
  }

  #finish(reason: StopReason | undefined): void {
    this.#close()
    this.#finished = true
    this.#deltas.push({ type: "stop", reason: stopWith(reason, this.#calls), sequence: undefined })
  }

  #candidate(json: JsonObject): void {
    const candidate = listOf(json.candidates)[0]
    if (isObject(candidate)) {
      for (const part of partsOf(candidate.content)) {
        if (isObject(part)) this.#part(part)
        if (this.#deltas.at(-1)?.type === "failure") return
      }
      const { finishMessage, finishReason } = candidate
      if (failures.has(finishReason))
        this.#deltas.push(failure("vendor", wordsOr(finishMessage, `the model stopped with ${String(finishReason)}`)))
      else if (typeof finishReason === "string" && finishReason !== "FINISH_REASON_UNSPECIFIED")
        this.#finish(reasons.get(finishReason))
    } else if (typeof objectOf(json.promptFeedback).blockReason === "string") this.#finish("refusal")
  }

  read(json: JsonObject): ReadonlyArray<Delta> {
    this.#deltas = []
    if (isObject(json.error)) return [{ type: "failure", failure: failureOf(json.error) }]
    if (!this.#begun) {
      this.#begun = true
      this.#deltas.push({ type: "start", id: text(json.responseId), model: text(json.modelVersion), usage: undefined })
    }
    const usage = isObject(json.usageMetadata) ? usageOf(json.usageMetadata) : undefined
    if (usage !== undefined) this.#deltas.push({ type: "usage", usage })
    if (!this.#finished) this.#candidate(json)
    return this.#deltas
  }

  end(): ReadonlyArray<Delta> {
    return this.#finished ? [{ type: "end" }] : [cutOff]
  }
}

export const reader = (): StreamReader => {
  const reading = new EventReader()
  return streamReader(
    (json) => reading.read(json),
    () => reading.end()
  )
}

export const readAnswer = (json: unknown): Either.Either<Answer, Failure> => {
  if (!isObject(json)) return Either.left({ kind: "vendor", message: "the upstream's response is not a JSON object" })
  const reading = new EventReader()
  const deltas = reading.read(json)
  const last = deltas.at(-1)
  return answerOf(last?.type === "failure" ? deltas : [...deltas, ...reading.end()])
}

export const writeAnswer = (answer: Answer, { id, model }: AnswerOptions): JsonObject => {
  const parts = answer.parts.map((part, index) =>
    part.type === "tool_call" ? { ...part, id: callId(part.id, id, index) } : part
  )
  const content = { role: "model", parts: writeModelParts(parts, false) }
  return {
    candidates: [{ content, finishReason: writeStop(answer.stop), index: 0 }],
    ...(answer.usage === undefined ? undefined : { usageMetadata: writeUsage(answer.usage) }),
    modelVersion: model,
    responseId: id
  }
}
