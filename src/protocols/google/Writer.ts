/** Writes the events of a Gemini stream. Text is written as it arrives, and a call once it is complete. */
import type { JsonObject } from "../conversation/Conversation.ts"
import type { AnswerPart } from "../conversation/Answer.ts"
import type { Delta, StopReason } from "../conversation/Delta.ts"
import { inSequence } from "../conversation/Stream.ts"
import { homeSigners, signatureIn } from "../conversation/Thoughts.ts"
import { callId } from "../conversation/ToolCalls.ts"
import type { StreamOptions, StreamWriter } from "../conversation/Translation.ts"
import type { Usage } from "../conversation/Usage.ts"
import { writeStop } from "./Answer.ts"
import { writeModelParts } from "./Parts.ts"
import { writeUsage } from "./Usage.ts"

type Start = Extract<Delta, { type: "text_start" | "refusal_start" | "thinking_start" | "tool_start" }>

class EventWriter {
  readonly #options: StreamOptions
  #start: Start = { type: "text_start", index: 0 }
  #text = ""
  #signature: string | undefined
  /** A signature to attach to the next call. */
  #pending: string | undefined
  #usage: Usage | undefined
  #reason: StopReason = "end"
  #out = ""
  readonly #sequence = inSequence((delta) => {
    this.#out += this.#write(delta)
  })

  constructor(options: StreamOptions) {
    this.#options = options
  }

  #chunk(candidate: JsonObject, more: JsonObject = {}): string {
    const { id, model } = this.#options
    const chunk = { candidates: [{ ...candidate, index: 0 }], ...more, modelVersion: model, responseId: id }
    return `data: ${JSON.stringify(chunk)}\n\n`
  }

  #parts(parts: ReadonlyArray<JsonObject>): string {
    return parts.length === 0 ? "" : this.#chunk({ content: { role: "model", parts } })
  }

  /** Writes the pending signature as a separate part, because no call follows it. */
  #flush(): string {
    const signature = this.#pending
    this.#pending = undefined
    return signature === undefined ? "" : this.#parts([{ text: "", thoughtSignature: signature }])
  }

  #partEnd(): string {
    const start = this.#start
    if (start.type === "tool_start") {
      const call: AnswerPart = {
        type: "tool_call",
        id: callId(start.id, this.#options.id, start.index),
        name: start.name,
        arguments: this.#text,
        custom: start.custom
      }
      const [part] = writeModelParts([call], false)
      const signature = this.#pending
      this.#pending = undefined
      return this.#parts([signature === undefined ? part! : { ...part, thoughtSignature: signature }])
    }
    if (start.type !== "thinking_start") return ""
    const own = signatureIn(homeSigners.google, { ...start, signature: this.#signature })
    if (own === undefined) return ""
    if (this.#text !== "") return this.#parts([{ text: "", thought: true, thoughtSignature: own }])
    const flushed = this.#flush()
    this.#pending = own
    return flushed
  }

  #write(delta: Delta): string {
    switch (delta.type) {
      case "text_start":
      case "refusal_start":
      case "thinking_start":
      case "tool_start":
        this.#start = delta
        this.#text = ""
        this.#signature = undefined
        return delta.type === "text_start" || delta.type === "refusal_start" ? this.#flush() : ""
      case "piece":
        this.#text += delta.text
        if (this.#start.type === "tool_start") return ""
        return this.#parts([
          this.#start.type === "thinking_start" ? { text: delta.text, thought: true } : { text: delta.text }
        ])
      case "signature":
        this.#signature = (this.#signature ?? "") + delta.text
        return ""
      case "part_end":
        return this.#partEnd()
      case "start":
      case "usage":
        this.#usage = delta.usage
        return ""
      case "stop":
        this.#reason = delta.reason
        return this.#flush()
      case "failure":
        return `data: ${JSON.stringify({ error: { code: 500, message: delta.failure.message, status: "INTERNAL" } })}\n\n`
      case "end":
        return this.#chunk(
          { content: { role: "model", parts: [{ text: "" }] }, finishReason: writeStop(this.#reason) },
          this.#usage === undefined ? {} : { usageMetadata: writeUsage(this.#usage) }
        )
    }
  }

  write(delta: Delta): string {
    this.#sequence(delta)
    const out = this.#out
    this.#out = ""
    return out
  }
}

export const writer = (options: StreamOptions): StreamWriter => {
  const writing = new EventWriter(options)
  return { write: (delta) => writing.write(delta) }
}
