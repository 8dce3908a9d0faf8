/**
 * Reads and writes the events of Messages streams.
 *
 * Where the specification is silent:
 * - `message_start` reports the prompt's usage if the vendor has reported it by then, otherwise zero. `message_delta` always reports usage.
 * - A response is complete once `message_delta` contains a stop reason, with or without `message_stop`. The same rule applies to untranslated
 *   streams.
 * - Only one block is open at a time. If the deltas of two tool calls alternate, the second call begins after the first has ended.
 */
import type { JsonObject, Signer } from "../conversation/Conversation.ts"
import type { Delta } from "../conversation/Delta.ts"
import { objectOf, text, textOr } from "../conversation/Json.ts"
import {
  cutOff,
  event,
  inSequence,
  nameOf,
  noDeltas,
  protocolViolation,
  stopWith,
  streamReader
} from "../conversation/Stream.ts"
import { homeSigners, signatureIn } from "../conversation/Thoughts.ts"
import { argumentsOf, callId } from "../conversation/ToolCalls.ts"
import type { StreamOptions, StreamReader, StreamWriter } from "../conversation/Translation.ts"
import { noUsage } from "../conversation/Usage.ts"
import type { Usage } from "../conversation/Usage.ts"
import { failureOf, readStop, writeFailure, writeStop } from "./Answer.ts"
import { usageOf, writeUsage } from "./Usage.ts"

interface Block {
  /** The part's index, or -1 if the block is ignored. */
  readonly part: number
  /** The arguments in the start event. Some vendors send no argument deltas. */
  early: string
}

class EventReader {
  readonly #blocks = new Map<unknown, Block>()
  #parts = 0
  #begun = false
  #calls = false
  #stopped = false
  #usage: JsonObject = {}

  #start(block: JsonObject): { readonly deltas: Array<Delta>; readonly early: string; readonly part: number } {
    const index = this.#parts
    const deltas: Array<Delta> = []
    const add = (start: Delta, pieces: unknown, signature?: unknown) => {
      this.#parts++
      deltas.push(start)
      if (typeof pieces === "string" && pieces !== "") deltas.push({ type: "piece", index, text: pieces })
      if (typeof signature === "string" && signature !== "") deltas.push({ type: "signature", index, text: signature })
      return index
    }
    switch (block.type) {
      case "text":
        return { part: add({ type: "text_start", index }, block.text), deltas, early: "" }
      case "thinking": {
        const start: Delta = { type: "thinking_start", index, signer: homeSigners.messages, redacted: false }
        return { part: add(start, block.thinking, block.signature), deltas, early: "" }
      }
      case "redacted_thinking": {
        const start: Delta = { type: "thinking_start", index, signer: homeSigners.messages, redacted: true }
        return { part: add(start, "", block.data), deltas, early: "" }
      }
      case "tool_use": {
        this.#calls = true
        const start: Delta = {
          type: "tool_start",
          index,
          id: textOr(block.id, ""),
          name: textOr(block.name, ""),
          custom: false
        }
        return { part: add(start, ""), deltas, early: argumentsOf(block.input) ?? "{}" }
      }
      default:
        return { part: -1, deltas, early: "" }
    }
  }

  #delta(json: JsonObject): ReadonlyArray<Delta> {
    const block = this.#blocks.get(json.index)
    if (block === undefined) return [protocolViolation("a fragment of a block that has not begun")]
    const index = block.part
    if (index === -1) return noDeltas
    const delta = objectOf(json.delta)
    switch (delta.type) {
      case "text_delta":
        return piece(index, delta.text)
      case "thinking_delta":
        return piece(index, delta.thinking)
      case "input_json_delta":
        if (typeof delta.partial_json === "string" && delta.partial_json !== "") block.early = ""
        return piece(index, delta.partial_json)
      case "signature_delta":
        return typeof delta.signature === "string" && delta.signature !== ""
          ? [{ type: "signature", index, text: delta.signature }]
          : noDeltas
      default:
        return noDeltas
    }
  }

  #stop(json: JsonObject): ReadonlyArray<Delta> {
    const block = this.#blocks.get(json.index)
    if (block === undefined) return [protocolViolation("the end of a block that has not begun")]
    this.#blocks.delete(json.index)
    if (block.part === -1) return noDeltas
    const end: Delta = { type: "part_end", index: block.part }
    return block.early === "" ? [end] : [...piece(block.part, block.early), end]
  }

  #counted(usage: unknown): Usage | undefined {
    const reported = objectOf(usage)
    const all: Record<string, unknown> = { ...this.#usage }
    for (const name in reported) if (reported[name] !== null) all[name] = reported[name]
    this.#usage = all
    return usageOf(all)
  }

  #ending(json: JsonObject): ReadonlyArray<Delta> {
    const usage = this.#counted(json.usage)
    const { stop_reason, stop_sequence } = objectOf(json.delta)
    const deltas: Array<Delta> = []
    if (usage !== undefined) deltas.push({ type: "usage", usage })
    if (typeof stop_reason === "string" && !this.#stopped) {
      this.#closeAll(deltas)
      const reason = stopWith(readStop(stop_reason), this.#calls)
      deltas.push({ type: "stop", reason, sequence: text(stop_sequence) })
    }
    return deltas
  }

  /** Ends the blocks that the vendor left open. */
  #closeAll(deltas: Array<Delta>): void {
    for (const { part } of this.#blocks.values()) if (part !== -1) deltas.push({ type: "part_end", index: part })
    this.#blocks.clear()
    this.#stopped = true
  }

  #end(): ReadonlyArray<Delta> {
    if (this.#stopped) return [{ type: "end" }]
    const deltas: Array<Delta> = []
    this.#closeAll(deltas)
    deltas.push({ type: "stop", reason: stopWith(undefined, this.#calls), sequence: undefined }, { type: "end" })
    return deltas
  }

  close(): ReadonlyArray<Delta> {
    return [this.#stopped ? { type: "end" } : cutOff]
  }

  read(json: JsonObject, name: string | undefined): ReadonlyArray<Delta> {
    switch (nameOf(json, name)) {
      case "content_block_delta":
        return this.#delta(json)
      case "content_block_start": {
        if (this.#stopped) return [protocolViolation("a block after its end")]
        const { deltas, early, part } = this.#start(objectOf(json.content_block))
        if (this.#blocks.has(json.index)) return [protocolViolation("a second start of a block")]
        this.#blocks.set(json.index, { part, early })
        return deltas
      }
      case "content_block_stop":
        return this.#stop(json)
      case "message_start": {
        if (this.#begun) return [protocolViolation("a second start")]
        this.#begun = true
        const { id, model, usage } = objectOf(json.message)
        const counted = this.#counted(usage)
        // The completion count in this event is not the total.
        this.#usage = { ...this.#usage, output_tokens: undefined }
        return [{ type: "start", id: text(id), model: text(model), usage: counted }]
      }
      case "message_delta":
        return this.#ending(json)
      case "message_stop":
        return this.#end()
      case "error":
        return [{ type: "failure", failure: failureOf(json) }]
      default:
        return noDeltas
    }
  }
}

const piece = (index: number, value: unknown): ReadonlyArray<Delta> =>
  typeof value === "string" && value !== "" ? [{ type: "piece", index, text: value }] : noDeltas

export const reader = (): StreamReader => {
  const reading = new EventReader()
  return streamReader(
    (json, name) => reading.read(json, name),
    () => reading.close()
  )
}

const startEvent = ({ id, model }: StreamOptions, usage: Usage | undefined): string =>
  event(
    "message_start",
    JSON.stringify({
      type: "message_start",
      message: {
        id: `msg_${id}`,
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: writeUsage(usage ?? noUsage)
      }
    })
  )

const blockStart = (index: number, block: JsonObject): string =>
  event("content_block_start", JSON.stringify({ type: "content_block_start", index, content_block: block }))

/** Writes the event for a `piece` delta. A response has thousands, so only the text is serialized as JSON. */
const blockDelta = (index: number, type: string, field: string, text: string): string =>
  `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${field}":${JSON.stringify(text)}}}\n\n`

interface Open {
  readonly type: "text" | "thinking" | "redacted" | "tool"
  readonly signer: Signer
  signature: string | undefined
}

class EventWriter {
  readonly #options: StreamOptions
  #usage: Usage | undefined
  #stop: Extract<Delta, { type: "stop" }> = { type: "stop", reason: "end", sequence: undefined }
  #refused = false
  #open: Open = { type: "text", signer: "unknown", signature: undefined }
  #out = ""
  readonly #sequence = inSequence((delta) => {
    this.#out += this.#write(delta)
  })

  constructor(options: StreamOptions) {
    this.#options = options
  }

  write(delta: Delta): string {
    this.#sequence(delta)
    const out = this.#out
    this.#out = ""
    return out
  }

  #write(delta: Delta): string {
    switch (delta.type) {
      case "piece":
        return this.#piece(delta.index, delta.text)
      case "start":
        this.#usage = delta.usage
        return startEvent(this.#options, delta.usage)
      case "text_start":
      case "refusal_start":
        this.#refused ||= delta.type === "refusal_start"
        this.#open = { type: "text", signer: "unknown", signature: undefined }
        return blockStart(delta.index, { type: "text", text: "" })
      case "thinking_start":
        this.#open = { type: delta.redacted ? "redacted" : "thinking", signer: delta.signer, signature: undefined }
        return delta.redacted ? "" : blockStart(delta.index, { type: "thinking", thinking: "", signature: "" })
      case "tool_start": {
        this.#open = { type: "tool", signer: "unknown", signature: undefined }
        const id = callId(delta.id, this.#options.id, delta.index)
        return blockStart(delta.index, { type: "tool_use", id, name: delta.name, input: {} })
      }
      case "signature":
        this.#open.signature = (this.#open.signature ?? "") + delta.text
        return ""
      case "part_end":
        return (
          this.#partEnd(delta.index) +
          `event: content_block_stop\ndata: {"type":"content_block_stop","index":${delta.index}}\n\n`
        )
      case "usage":
        this.#usage = delta.usage
        return ""
      case "stop":
        this.#stop = delta
        return ""
      case "failure":
        return event("error", JSON.stringify(writeFailure(delta.failure)))
      case "end":
        return this.#end()
    }
  }

  #piece(index: number, text: string): string {
    switch (this.#open.type) {
      case "text":
        return blockDelta(index, "text_delta", "text", text)
      case "tool":
        return blockDelta(index, "input_json_delta", "partial_json", text)
      case "thinking":
        return blockDelta(index, "thinking_delta", "thinking", text)
      case "redacted":
        return ""
    }
  }

  /** Writes an ended part's signature, which is complete only now. */
  #partEnd(index: number): string {
    const { signature, signer, type } = this.#open
    if (type !== "thinking" && type !== "redacted") return ""
    const redacted = type === "redacted"
    const whole = signatureIn(homeSigners.messages, { signature, signer, redacted })
    if (redacted) return blockStart(index, { type: "redacted_thinking", data: whole ?? "" })
    return whole === undefined ? "" : blockDelta(index, "signature_delta", "signature", whole)
  }

  #end(): string {
    const { reason, sequence } = this.#stop
    const delta = { stop_reason: writeStop(reason, this.#refused), stop_sequence: sequence ?? null }
    const usage = this.#usage === undefined ? { output_tokens: 0 } : writeUsage(this.#usage)
    return (
      event("message_delta", JSON.stringify({ type: "message_delta", delta, usage })) +
      event("message_stop", '{"type":"message_stop"}')
    )
  }
}

export const writer = (options: StreamOptions): StreamWriter => {
  const writing = new EventWriter(options)
  return { write: (delta) => writing.write(delta) }
}
