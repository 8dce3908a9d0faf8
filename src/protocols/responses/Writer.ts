/**
 * Writes the numbered events of a Responses stream. Each item gets an event when it is added, events for its content, and an event when it is done.
 * The first two events and the last one contain the response object.
 */
import type { JsonObject } from "../conversation/Conversation.ts"
import type { Delta, Failure, StopReason } from "../conversation/Delta.ts"
import { event } from "../conversation/Stream.ts"
import { callId } from "../conversation/ToolCalls.ts"
import type { StreamOptions, StreamWriter } from "../conversation/Translation.ts"
import type { Usage } from "../conversation/Usage.ts"
import {
  callItem,
  itemId,
  messageItem,
  refusalPart,
  responseOf,
  textPart,
  thoughtItem,
  writeFailure,
  writeStop
} from "./Answer.ts"
import { originalName } from "./Namespaces.ts"

interface Message {
  readonly id: string
  readonly output_index: number
  readonly content: Array<JsonObject>
  /** The number of open parts in the message. */
  open: number
}

/** A part of the response that receives deltas. */
interface Part {
  readonly start: Extract<Delta, { type: "text_start" | "refusal_start" | "thinking_start" | "tool_start" }>
  readonly item: string
  readonly output_index: number
  readonly content_index: number
  readonly message: Message | undefined
  /** The JSON members that locate the part in its delta events. */
  readonly place: string
  text: string
  signature: string | undefined
}

const deltaEvents = {
  text_start: "response.output_text.delta",
  refusal_start: "response.refusal.delta",
  thinking_start: "response.reasoning_summary_text.delta",
  tool_start: "response.function_call_arguments.delta"
} as const

const customDelta = "response.custom_tool_call_input.delta"

class EventWriter {
  readonly #options: StreamOptions
  readonly #parts: Array<Part> = []
  readonly #output: Array<JsonObject> = []
  #items = 0
  #message: Message | undefined
  #sequence = 0
  #begun = false
  #refused = false
  #usage: Usage | undefined
  #reason: StopReason = "end"

  constructor(options: StreamOptions) {
    this.#options = options
  }

  #event(type: string, fields: JsonObject): string {
    return event(type, JSON.stringify({ type, sequence_number: this.#sequence++, ...fields }))
  }

  #response(status: string, incomplete_details: JsonObject | null, error: JsonObject | null): JsonObject {
    const ended = status !== "in_progress"
    const output = this.#output.filter((item) => item !== undefined)
    return responseOf(this.#options, {
      status,
      incomplete_details,
      error,
      output: ended ? output : [],
      usage: ended ? this.#usage : undefined
    })
  }

  #begin(): string {
    if (this.#begun) return ""
    this.#begun = true
    const response = this.#response("in_progress", null, null)
    return this.#event("response.created", { response }) + this.#event("response.in_progress", { response })
  }

  #added(output_index: number, item: JsonObject): string {
    return this.#event("response.output_item.added", { output_index, item })
  }

  #done(output_index: number, item: JsonObject): string {
    this.#output[output_index] = item
    return this.#event("response.output_item.done", { output_index, item })
  }

  #closeMessage(): string {
    const message = this.#message
    if (message === undefined || message.open > 0) return ""
    this.#message = undefined
    return this.#done(message.output_index, messageItem(message.id, "completed", message.content))
  }

  #part(start: Part["start"], item: string, output_index: number, message: Message | undefined, content_index: number) {
    const numbers = `"item_id":"${item}","output_index":${output_index}`
    const place =
      start.type === "tool_start"
        ? numbers
        : start.type === "thinking_start"
          ? `${numbers},"summary_index":0`
          : `${numbers},"content_index":${content_index}`
    const part: Part = { start, item, output_index, content_index, message, place, text: "", signature: undefined }
    this.#parts[start.index] = part
    return part
  }

  #textStart(start: Extract<Delta, { type: "text_start" | "refusal_start" }>): string {
    let out = ""
    let message = this.#message
    if (message === undefined) {
      const output_index = this.#items++
      message = { id: itemId("msg", this.#options.id, output_index), output_index, content: [], open: 0 }
      this.#message = message
      out += this.#added(output_index, messageItem(message.id, "in_progress", []))
    }
    const { content, id: item_id, output_index } = message
    const content_index = content.length
    const part = start.type === "text_start" ? textPart("") : refusalPart("")
    this.#refused ||= start.type === "refusal_start"
    content.push(part)
    message.open++
    this.#part(start, item_id, output_index, message, content_index)
    return out + this.#event("response.content_part.added", { item_id, output_index, content_index, part })
  }

  #thinkingStart(start: Extract<Delta, { type: "thinking_start" }>): string {
    const closed = this.#closeMessage()
    const output_index = this.#items++
    const id = itemId("rs", this.#options.id, output_index)
    this.#part(start, id, output_index, undefined, 0)
    return closed + this.#added(output_index, { id, type: "reasoning", summary: [] })
  }

  #toolStart(start: Extract<Delta, { type: "tool_start" }>): string {
    const closed = this.#closeMessage()
    const output_index = this.#items++
    const item = itemId(start.custom ? "ctc" : "fc", this.#options.id, output_index)
    const part = this.#part(start, item, output_index, undefined, 0)
    return closed + this.#added(output_index, this.#callItem(part, start, "in_progress"))
  }

  #callItem(part: Part, start: Extract<Delta, { type: "tool_start" }>, status: string): JsonObject {
    const { custom, id, index, name } = start
    const call_id = callId(id, this.#options.id, index)
    return callItem(part.item, { status, call_id, name, arguments: part.text, custom }, this.#options.request)
  }

  #piece(part: Part, piece: string): string {
    const { start } = part
    const opened = start.type === "thinking_start" && part.text === "" ? this.#summaryStart(part) : ""
    part.text += piece
    const type = start.type === "tool_start" && start.custom ? customDelta : deltaEvents[start.type]
    const logprobs = start.type === "text_start" ? ',"logprobs":[]' : ""
    return `${opened}event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++},${part.place},"delta":${JSON.stringify(piece)}${logprobs}}\n\n`
  }

  #summaryStart({ item, output_index }: Part): string {
    const part = { type: "summary_text", text: "" }
    return this.#event("response.reasoning_summary_part.added", { item_id: item, output_index, summary_index: 0, part })
  }

  #partEnd(part: Part): string {
    const { start } = part
    switch (start.type) {
      case "text_start":
      case "refusal_start":
        return this.#textEnd(part, start.type)
      case "thinking_start":
        return this.#thinkingEnd(part, start)
      case "tool_start":
        return this.#toolEnd(part, start)
    }
  }

  #textEnd(part: Part, type: "text_start" | "refusal_start"): string {
    const { content_index, item: item_id, output_index, text } = part
    const place = { item_id, output_index, content_index }
    const whole = type === "text_start" ? textPart(text) : refusalPart(text)
    const message = part.message!
    message.content[content_index] = whole
    message.open--
    const done =
      type === "text_start"
        ? this.#event("response.output_text.done", { ...place, text, logprobs: [] })
        : this.#event("response.refusal.done", { ...place, refusal: text })
    return done + this.#event("response.content_part.done", { ...place, part: whole })
  }

  #thinkingEnd(part: Part, { redacted, signer }: Extract<Delta, { type: "thinking_start" }>): string {
    const { item: item_id, output_index, signature, text } = part
    const place = { item_id, output_index, summary_index: 0 }
    const summary =
      text === ""
        ? ""
        : this.#event("response.reasoning_summary_text.done", { ...place, text }) +
          this.#event("response.reasoning_summary_part.done", { ...place, part: { type: "summary_text", text } })
    return summary + this.#done(output_index, thoughtItem(item_id, { text, signature, signer, redacted }))
  }

  #toolEnd(part: Part, start: Extract<Delta, { type: "tool_start" }>): string {
    const { item: item_id, output_index } = part
    let out = ""
    if (part.text === "" && !start.custom) out += this.#piece(part, "{}")
    out += start.custom
      ? this.#event("response.custom_tool_call_input.done", { item_id, output_index, input: part.text })
      : this.#event("response.function_call_arguments.done", {
          item_id,
          output_index,
          name: originalName(this.#options.request, start.name).name,
          arguments: part.text
        })
    return out + this.#done(output_index, this.#callItem(part, start, "completed"))
  }

  #end(): string {
    const { incomplete_details, status } = writeStop(this.#reason, this.#refused)
    const closed = this.#closeMessage()
    const response = this.#response(status, incomplete_details, null)
    return closed + this.#event(`response.${status}`, { response })
  }

  /** Sends `error` and `response.failed`, as OpenAI does. OpenAI's SDK reacts to `error`, other clients to `response.failed`. */
  #fail(failure: Failure): string {
    const begun = this.#begin()
    const { code, message } = writeFailure(failure)
    const error = this.#event("error", { error: { type: code, code, message, param: null } })
    const response = this.#response("failed", null, { code, message })
    return begun + error + this.#event("response.failed", { response })
  }

  write(delta: Delta): string {
    switch (delta.type) {
      case "piece": {
        const part = this.#parts[delta.index]
        return part === undefined ? "" : this.#piece(part, delta.text)
      }
      case "start":
        this.#usage = delta.usage
        return this.#begin()
      case "text_start":
      case "refusal_start":
        return this.#textStart(delta)
      case "thinking_start":
        return this.#thinkingStart(delta)
      case "tool_start":
        return this.#toolStart(delta)
      case "signature": {
        const part = this.#parts[delta.index]
        if (part !== undefined) part.signature = (part.signature ?? "") + delta.text
        return ""
      }
      case "part_end": {
        const part = this.#parts[delta.index]
        return part === undefined ? "" : this.#partEnd(part)
      }
      case "usage":
        this.#usage = delta.usage
        return ""
      case "stop":
        this.#reason = delta.reason
        return this.#closeMessage()
      case "failure":
        return this.#fail(delta.failure)
      case "end":
        return this.#end()
    }
  }
}

export const writer = (options: StreamOptions): StreamWriter => {
  const writing = new EventWriter(options)
  return { write: (delta) => writing.write(delta) }
}
