/**
 * Reads the events of a Responses stream.
 *
 * Where the specification is silent:
 * - A part begins with a start event or, if a server omits that event, with its first delta. Content without deltas is read from the event that ends
 *   its part or item.
 * - A summary's parts form one reasoning part, separated by empty lines.
 */
import type { JsonObject } from "../conversation/Conversation.ts"
import type { Delta } from "../conversation/Delta.ts"
import { isObject, listOf, objectOf, text, textOr } from "../conversation/Json.ts"
import { cutOff, nameOf, noDeltas, stopWith, streamReader } from "../conversation/Stream.ts"
import { homeSigners } from "../conversation/Thoughts.ts"
import type { StreamReader } from "../conversation/Translation.ts"
import { failureOf, readStop } from "./Answer.ts"
import { thoughtText } from "./Items.ts"
import { usageOf } from "./Usage.ts"

interface Part {
  readonly index: number
  readonly kind: "text" | "refusal" | "thinking" | "call"
  /** Whether any content has been read. */
  said: boolean
  open: boolean
}

class EventReader {
  #begun = false
  #parts = 0
  #calls = false
  /** The parts, by `output_index` and, for texts and refusals, `content_index`. */
  readonly #known = new Map<string, Part>()
  #deltas: Array<Delta> = []

  #begin(key: string, kind: Part["kind"], start: (index: number) => Delta): Part {
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const part: Part = { index: this.#parts++, kind, said: false, open: true }
    this.#known.set(key, part)
    this.#deltas.push(start(part.index))
    return part
  }

  #piece(part: Part, value: unknown): void {
    if (!part.open || typeof value !== "string" || value === "") return
    part.said = true
    this.#deltas.push({ type: "piece", index: part.index, text: value })
  }

  #close(part: Part): void {
    if (part.open) this.#deltas.push({ type: "part_end", index: part.index })
    part.open = false
  }

  #text(json: JsonObject, kind: "text" | "refusal"): Part {
    return this.#begin(keyOf(json), kind, (index) => ({
      type: kind === "text" ? "text_start" : "refusal_start",
      index
    }))
  }

  #thought(json: JsonObject): Part {
    return this.#begin(itemKey(json), "thinking", (index) => ({
      type: "thinking_start",
      index,
      signer: homeSigners.responses,
      redacted: false
    }))
  }

  #call(json: JsonObject, item: JsonObject): Part {
    this.#calls = true
    return this.#begin(itemKey(json), "call", (index) => ({
      type: "tool_start",
      index,
      id: textOr(item.call_id, ""),
      name: textOr(item.name, ""),
      custom: item.type === "custom_tool_call"
    }))
  }

  #itemBegins(json: JsonObject): void {
    const item = objectOf(json.item)
    if (item.type === "reasoning") this.#thought(json)
    else if (item.type === "function_call" || item.type === "custom_tool_call") this.#call(json, item)
  }

  /** Adds the completed item's content that did not arrive in deltas. */
  #itemEnds(json: JsonObject): void {
    const item = objectOf(json.item)
    if (item.type === "reasoning") {
      const part = this.#thought(json)
      if (!part.said) this.#piece(part, thoughtText(item))
      const signature = item.encrypted_content
      if (part.open && typeof signature === "string" && signature !== "")
        this.#deltas.push({ type: "signature", index: part.index, text: signature })
      this.#close(part)
    } else if (item.type === "function_call" || item.type === "custom_tool_call") {
      const part = this.#call(json, item)
      if (!part.said) this.#piece(part, item.type === "function_call" ? item.arguments : item.input)
      this.#close(part)
    } else if (item.type === "message") this.#messageEnds(json, item)
  }

  #messageEnds(json: JsonObject, item: JsonObject): void {
    for (const [content_index, content] of listOf(item.content).entries()) {
      const { refusal, text: said, type } = objectOf(content)
      if (type !== "output_text" && type !== "refusal") continue
      const part = this.#text({ output_index: json.output_index, content_index }, type === "refusal" ? type : "text")
      if (!part.said) this.#piece(part, type === "refusal" ? refusal : said)
      this.#close(part)
    }
  }

  #ends(response: JsonObject): ReadonlyArray<Delta> {
    for (const part of this.#known.values()) this.#close(part)
    const usage = usageOf(response.usage)
    if (usage !== undefined) this.#deltas.push({ type: "usage", usage })
    const reason = stopWith(readStop(response), this.#calls)
    this.#deltas.push({ type: "stop", reason, sequence: undefined }, { type: "end" })
    return this.#deltas
  }

  #fails({ error, usage: used }: JsonObject): ReadonlyArray<Delta> {
    const failure: Delta = { type: "failure", failure: failureOf(error) }
    const usage = usageOf(used)
    return usage === undefined ? [failure] : [{ type: "usage", usage }, failure]
  }

  #begins(response: JsonObject): ReadonlyArray<Delta> {
    if (this.#begun) return noDeltas
    this.#begun = true
    return [{ type: "start", id: text(response.id), model: text(response.model), usage: undefined }]
  }

  read(json: JsonObject, event: string | undefined): ReadonlyArray<Delta> {
    this.#deltas = []
    switch (nameOf(json, event)) {
      case "response.output_text.delta":
        this.#piece(this.#text(json, "text"), json.delta)
        break
      case "response.refusal.delta":
        this.#piece(this.#text(json, "refusal"), json.delta)
        break
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta": {
        const part = this.#known.get(itemKey(json))
        if (part !== undefined) this.#piece(part, json.delta)
        break
      }
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.#piece(this.#thought(json), json.delta)
        break
      case "response.reasoning_summary_part.added": {
        const part = this.#thought(json)
        if (part.said) this.#piece(part, "\n\n")
        break
      }
      case "response.content_part.added": {
        const { type } = objectOf(json.part)
        if (type === "output_text" || type === "refusal") this.#text(json, type === "refusal" ? type : "text")
        break
      }
      case "response.content_part.done": {
        const part = this.#known.get(keyOf(json))
        if (part !== undefined) this.#contentEnds(part, objectOf(json.part))
        break
      }
      case "response.output_item.added":
        this.#itemBegins(json)
        break
      case "response.output_item.done":
        this.#itemEnds(json)
        break
      case "response.created":
      case "response.in_progress":
        return this.#begins(objectOf(json.response))
      case "response.completed":
      case "response.incomplete":
        return this.#ends(objectOf(json.response))
      case "response.failed":
        return this.#fails(objectOf(json.response))
      case "response.cancelled":
        return [{ type: "failure", failure: { kind: "vendor", message: "the upstream cancelled the answer" } }]
      case "error":
        return [{ type: "failure", failure: failureOf(isObject(json.error) ? json.error : json) }]
      default:
        return noDeltas
    }
    return this.#deltas
  }

  #contentEnds(part: Part, content: JsonObject): void {
    if (!part.said) this.#piece(part, part.kind === "refusal" ? content.refusal : content.text)
    this.#close(part)
  }
}

const itemKey = ({ output_index }: JsonObject): string => String(output_index)
const keyOf = ({ content_index, output_index }: JsonObject): string =>
  `${String(output_index)}.${String(content_index)}`

export const reader = (): StreamReader => {
  const reading = new EventReader()
  return streamReader(
    (json, name) => reading.read(json, name),
    () => [cutOff]
  )
}
