/**
 * Reads and writes the events of Bedrock's ConverseStream. An event's name is its frame's `:event-type` or `:exception-type`.
 *
 * Where the specification is silent:
 * - Only tool calls have a start event. Any other block begins with its first delta, which determines its type.
 * - A stream has no last event. It is complete after `messageStop`, and the usage follows.
 */
import type { JsonObject } from "../conversation/Conversation.ts"
import type { Delta } from "../conversation/Delta.ts"
import { isObject, objectOf, textOr } from "../conversation/Json.ts"
import {
  cutOff,
  event,
  failure,
  inSequence,
  noDeltas,
  protocolViolation,
  stopWith,
  streamReader
} from "../conversation/Stream.ts"
import { homeSigners, signatureIn } from "../conversation/Thoughts.ts"
import { callId } from "../conversation/ToolCalls.ts"
import type { StreamOptions, StreamReader, StreamWriter } from "../conversation/Translation.ts"
import type { Usage } from "../conversation/Usage.ts"
import { failureOf, isMalformed, readStop, sequenceOf, writeStop } from "./Answer.ts"
import { usageOf, writeUsage } from "./Usage.ts"

class EventReader {
  readonly #blocks = new Map<unknown, number>()
  #parts = 0
  #calls = false
  #finished = false

  #begin(block: unknown, start: (index: number) => Delta, deltas: Array<Delta>): number {
    const known = this.#blocks.get(block)
    if (known !== undefined) return known
    const index = this.#parts++
    this.#blocks.set(block, index)
    deltas.push(start(index))
    return index
  }

  #start(json: JsonObject): ReadonlyArray<Delta> {
    const { toolUse } = objectOf(json.start)
    if (!isObject(toolUse)) return noDeltas
    if (this.#blocks.has(json.contentBlockIndex)) return [protocolViolation("a second start of a block")]
    this.#calls = true
    const deltas: Array<Delta> = []
    const { name, toolUseId } = toolUse
    this.#begin(
      json.contentBlockIndex,
      (index) => ({ type: "tool_start", index, id: textOr(toolUseId, ""), name: textOr(name, ""), custom: false }),
      deltas
    )
    return deltas
  }

  #delta(json: JsonObject): ReadonlyArray<Delta> {
    const block = json.contentBlockIndex
    const { reasoningContent, text: said, toolUse } = objectOf(json.delta)
    const deltas: Array<Delta> = []
    if (typeof said === "string") {
      const index = this.#begin(block, (index) => ({ type: "text_start", index }), deltas)
      if (said !== "") deltas.push({ type: "piece", index, text: said })
    } else if (isObject(toolUse)) {
      const index = this.#blocks.get(block)
      if (index === undefined) return [protocolViolation("a fragment of a call that has not begun")]
      if (typeof toolUse.input === "string" && toolUse.input !== "")
        deltas.push({ type: "piece", index, text: toolUse.input })
    } else if (isObject(reasoningContent)) this.#think(block, reasoningContent, deltas)
    return deltas
  }

  #think(block: unknown, { redactedContent, signature, text: thought }: JsonObject, deltas: Array<Delta>): void {
    const redacted = typeof redactedContent === "string"
    const index = this.#begin(
      block,
      (index) => ({ type: "thinking_start", index, signer: homeSigners.bedrock, redacted }),
      deltas
    )
    if (typeof thought === "string" && thought !== "") deltas.push({ type: "piece", index, text: thought })
    const value = redacted ? redactedContent : signature
    if (typeof value === "string" && value !== "") deltas.push({ type: "signature", index, text: value })
  }

  #stop(json: JsonObject): ReadonlyArray<Delta> {
    const index = this.#blocks.get(json.contentBlockIndex)
    // A block without content never began.
    if (index === undefined) return noDeltas
    this.#blocks.delete(json.contentBlockIndex)
    return [{ type: "part_end", index }]
  }

  #finish({ additionalModelResponseFields, stopReason }: JsonObject): ReadonlyArray<Delta> {
    if (isMalformed(stopReason)) return [failure("vendor", `the model stopped with ${String(stopReason)}`)]
    const deltas: Array<Delta> = [...this.#blocks.values()].map((index) => ({ type: "part_end", index }))
    this.#blocks.clear()
    this.#finished = true
    const reason = stopWith(readStop(stopReason), this.#calls)
    deltas.push({ type: "stop", reason, sequence: sequenceOf(additionalModelResponseFields) })
    return deltas
  }

  read(json: JsonObject, name: string | undefined): ReadonlyArray<Delta> {
    if (name !== undefined && /exception$/i.test(name)) return [{ type: "failure", failure: failureOf(name, json) }]
    if (this.#finished && name !== "metadata") return noDeltas
    switch (name) {
      case "contentBlockDelta":
        return this.#delta(json)
      case "contentBlockStart":
        return this.#start(json)
      case "contentBlockStop":
        return this.#stop(json)
      case "messageStart":
        return [{ type: "start", id: undefined, model: undefined, usage: undefined }]
      case "messageStop":
        return this.#finish(json)
      case "metadata": {
        const usage = usageOf(json.usage)
        return usage === undefined ? noDeltas : [{ type: "usage", usage }]
      }
      default:
        return noDeltas
    }
  }

  end(): ReadonlyArray<Delta> {
    return this.#finished ? [{ type: "end" }] : [cutOff]
  }
}

export const reader = (): StreamReader => {
  const reading = new EventReader()
  return streamReader(
    (json, name) => reading.read(json, name),
    () => reading.end()
  )
}

type Start = Extract<Delta, { type: "text_start" | "refusal_start" | "thinking_start" | "tool_start" }>

class EventWriter {
  readonly #options: StreamOptions
  #start: Start = { type: "text_start", index: 0 }
  #signature: string | undefined
  #usage: Usage | undefined
  #out = ""
  readonly #sequence = inSequence((delta) => {
    this.#out += this.#write(delta)
  })

  constructor(options: StreamOptions) {
    this.#options = options
  }

  #delta(contentBlockIndex: number, delta: JsonObject): string {
    return event("contentBlockDelta", JSON.stringify({ contentBlockIndex, delta }))
  }

  #piece(index: number, piece: string): string {
    switch (this.#start.type) {
      case "tool_start":
        return this.#delta(index, { toolUse: { input: piece } })
      case "thinking_start":
        return this.#delta(index, { reasoningContent: { text: piece } })
      default:
        return this.#delta(index, { text: piece })
    }
  }

  #partEnd(index: number): string {
    const start = this.#start
    const stop = event("contentBlockStop", JSON.stringify({ contentBlockIndex: index }))
    if (start.type !== "thinking_start") return stop
    const signature = signatureIn(homeSigners.bedrock, { ...start, signature: this.#signature })
    if (signature === undefined) return stop
    const reasoningContent = start.redacted ? { redactedContent: signature } : { signature }
    return this.#delta(index, { reasoningContent }) + stop
  }

  #write(delta: Delta): string {
    switch (delta.type) {
      case "piece":
        return this.#piece(delta.index, delta.text)
      case "tool_start": {
        this.#start = delta
        const toolUse = { toolUseId: callId(delta.id, this.#options.id, delta.index), name: delta.name }
        return event("contentBlockStart", JSON.stringify({ contentBlockIndex: delta.index, start: { toolUse } }))
      }
      case "text_start":
      case "refusal_start":
        this.#start = delta
        return this.#delta(delta.index, { text: "" })
      case "thinking_start":
        this.#start = delta
        this.#signature = undefined
        return ""
      case "signature":
        this.#signature = (this.#signature ?? "") + delta.text
        return ""
      case "part_end":
        return this.#partEnd(delta.index)
      case "start":
        this.#usage = delta.usage
        return event("messageStart", '{"role":"assistant"}')
      case "usage":
        this.#usage = delta.usage
        return ""
      case "stop":
        return event("messageStop", JSON.stringify(stopOf(delta)))
      case "failure":
        return event("modelStreamErrorException", JSON.stringify({ message: delta.failure.message }))
      case "end":
        return this.#usage === undefined ? "" : event("metadata", JSON.stringify({ usage: writeUsage(this.#usage) }))
    }
  }

  write(delta: Delta): string {
    this.#sequence(delta)
    const out = this.#out
    this.#out = ""
    return out
  }
}

const stopOf = ({ reason, sequence }: Extract<Delta, { type: "stop" }>): JsonObject =>
  sequence === undefined
    ? { stopReason: writeStop(reason) }
    : { stopReason: writeStop(reason), additionalModelResponseFields: { stop_sequence: sequence } }

export const writer = (options: StreamOptions): StreamWriter => {
  const writing = new EventWriter(options)
  return { write: (delta) => writing.write(delta) }
}
