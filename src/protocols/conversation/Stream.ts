/**
 * Building blocks of all protocols' stream readers and writers.
 *
 * Where the specification is silent:
 * - An event that is not a JSON object, or that belongs to a part that never began, is a failure. Unknown events are skipped. A stream that ends
 *   before its response is complete also fails.
 * - An unknown stop reason becomes `end`, or `tool` if there are tool calls.
 */
import type { JsonObject } from "./Conversation.ts"
import type { Delta, FailureKind, StopReason } from "./Delta.ts"
import { isObject, parsed, parsedOfVendor, text } from "./Json.ts"
import type { StreamReader } from "./Translation.ts"

export const noDeltas: ReadonlyArray<Delta> = []

export const failure = (kind: FailureKind, message: string): Delta => ({ type: "failure", failure: { kind, message } })

/** Builds the failure of a stream that violates its protocol. `what` describes the upstream's data. */
export const protocolViolation = (what: string): Delta => failure("vendor", `the upstream sent ${what}`)

export const cutOff: Delta = failure("vendor", "the upstream's stream was truncated")

const isLast = (delta: Delta | undefined): boolean => delta?.type === "end" || delta?.type === "failure"

/** The start of a stream that has no start event. */
const anonymousStart: Delta = { type: "start", id: undefined, model: undefined, usage: undefined }

/** Creates a reader of JSON events. `atEnd` returns the deltas for `[DONE]` or the end of the bytes. */
export const streamReader = (
  read: (json: JsonObject, event: string | undefined) => ReadonlyArray<Delta>,
  atEnd: () => ReadonlyArray<Delta>
): StreamReader => {
  let begun = false
  let over = false
  const noting = (deltas: ReadonlyArray<Delta>): ReadonlyArray<Delta> => {
    const [first] = deltas
    if (first === undefined) return deltas
    over = isLast(deltas.at(-1))
    if (begun) return deltas
    begun = true
    return first.type === "start" || first.type === "failure" ? deltas : [anonymousStart, ...deltas]
  }
  const pieces = new DeltaTemplate()
  return {
    read: ({ data, event }) => {
      if (over) return noDeltas
      const piece = pieces.find(data, event)
      if (piece !== undefined) return [piece]
      if (data.length < 10 && data.trim() === "[DONE]") return noting(atEnd())
      const json = parsedOfVendor(data)
      if (!isObject(json)) return noting([protocolViolation("an event that is not a JSON object")])
      const deltas = read(json, event)
      pieces.learn(data, event, deltas)
      return noting(deltas)
    },
    close: () => (over ? noDeltas : noting(atEnd()))
  }
}

type Piece = Extract<Delta, { readonly type: "piece" }>

/** The number of consecutive templates without a matching event before recognition stops. */
const missesMax = 8

/**
 * Recognizes events that differ from the previous one only in their text fragment. Most events do, and not parsing them saves most of the time. An
 * event that yields exactly one `piece` delta becomes the template for later events. The first matching event is still parsed, to verify the position
 * of the text. Later matches bypass the protocol's `read`, because a matching event would not change its state.
 */
class DeltaTemplate {
  private name: string | undefined
  /** The template's text before and after its fragment. Both are empty without a template. */
  private before = ""
  private after = ""
  private index = 0
  private text = ""
  private proven = false
  /** The current event's fragment according to an unproven template. */
  private expected: string | undefined
  private fruitless = 0

  find(data: string, event: string | undefined): Piece | undefined {
    const { after, before } = this
    const to = data.length - after.length
    if (before === "" || to <= before.length || event !== this.name) return undefined
    if (!data.startsWith(before) || !data.endsWith(after)) return undefined
    const text = stringIn(data, before.length, to)
    if (text !== undefined && this.proven) return { type: "piece", index: this.index, text }
    this.expected = text
    return undefined
  }

  /** Updates the template. Call it for every parsed event. */
  learn(data: string, event: string | undefined, deltas: ReadonlyArray<Delta>): void {
    const { expected } = this
    this.expected = undefined
    const piece = deltas[0]
    if (deltas.length !== 1 || piece?.type !== "piece") {
      this.before = ""
      return
    }
    // Two equal fragments do not prove the text's position.
    if (expected === piece.text && expected !== this.text && piece.index === this.index) {
      this.proven = true
      this.fruitless = 0
    } else if (this.fruitless < missesMax) this.follow(data, event, piece)
    else this.before = ""
  }

  private follow(data: string, event: string | undefined, { index, text }: Piece): void {
    const at = isVerbatim(text) ? data.lastIndexOf(`"${text}"`) + 1 : 0
    this.fruitless++
    this.proven = false
    this.name = event
    this.before = data.slice(0, at)
    this.after = data.slice(at + text.length)
    this.index = index
    this.text = text
  }
}

/** The minimum length of a slice that V8 does not copy. */
const sliceMin = 13

/**
 * Returns the decoded JSON string between these positions, or `undefined` if it is invalid or empty. A long string is parsed even if it contains no
 * escapes, because a slice would keep the entire original string in memory.
 */
const stringIn = (json: string, from: number, to: number): string | undefined => {
  const text = json.slice(from, to)
  if (text.length < sliceMin && isVerbatim(text)) return text
  const value = parsed(json.slice(from - 1, to + 1))
  return typeof value === "string" && value !== "" ? value : undefined
}

/** Returns whether the string needs no escapes in JSON. */
const isVerbatim = (text: string): boolean => {
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character < 0x20 || character === 0x22 || character === 0x5c) return false
  }
  return true
}

/** Returns an event's name: the `type` in its data, or the event field if there is no `type`. */
export const nameOf = (json: JsonObject, event: string | undefined): string | undefined => text(json.type) ?? event

/** Returns the stop reason, or `tool` if there are calls and the reason is `end` or missing, as some vendors report tool calls. */
export const stopWith = (reason: StopReason | undefined, calls: boolean): StopReason =>
  calls && (reason === undefined || reason === "end") ? "tool" : (reason ?? "end")

export const event = (name: string, json: string): string => `event: ${name}\ndata: ${json}\n\n`

/**
 * Creates a function that reorders interleaved deltas, for protocols that allow only one open part at a time. It buffers a later part's deltas until
 * the earlier parts have ended.
 */
export const inSequence = (emit: (delta: Delta) => void): ((delta: Delta) => void) => {
  /** The open part's index, or -1. `waiting` contains the other parts' deltas, in the order the parts began. */
  let open = -1
  const waiting = new Map<number, Array<Delta>>()
  const next = (): void => {
    open = -1
    for (const [index, deltas] of waiting) {
      waiting.delete(index)
      for (const delta of deltas) emit(delta)
      if (deltas.at(-1)?.type === "part_end") continue
      open = index
      return
    }
  }
  return (delta) => {
    switch (delta.type) {
      case "text_start":
      case "refusal_start":
      case "thinking_start":
      case "tool_start":
        if (open === -1) {
          open = delta.index
          emit(delta)
        } else waiting.set(delta.index, [delta])
        return
      case "piece":
      case "signature":
      case "part_end":
        if (delta.index !== open) waiting.get(delta.index)?.push(delta)
        else {
          emit(delta)
          if (delta.type === "part_end") next()
        }
        return
      default:
        emit(delta)
    }
  }
}
