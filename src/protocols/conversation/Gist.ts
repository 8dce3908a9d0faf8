/**
 * Extracts the essentials of a JSON object that is too long to buffer or cannot be parsed: its usage, its stop reason, and the number of generated
 * bytes. The bytes are read in bounded memory as they arrive. One gist serves all protocols, because each member name has the same meaning in all of
 * them.
 */
import type { JsonObject } from "./Conversation.ts"
import { isObject, parsedOfVendor } from "./Json.ts"

/** The members to extract, from the object itself and from `entered` objects. */
const kept: ReadonlySet<string> = new Set([
  "type",
  "index",
  "sequence_number",
  "status",
  "incomplete_details",
  "error",
  "finish_reason",
  "finishReason",
  "stop_reason",
  "stopReason",
  "promptFeedback",
  "usage",
  "usageMetadata",
  "meta",
  "duration"
])
/** The members to search as well. Each contains an object or an array of objects. */
const entered: ReadonlySet<string> = new Set(["response", "message", "delta", "choices", "candidates"])

/** Names of members that contain generated strings. Members that only repeat earlier events are excluded. */
export type Generated = ReadonlySet<string>

/** The names in complete answers and in most streams. */
export const generated: Generated = new Set([
  "content",
  "text",
  "refusal",
  "arguments",
  "input",
  "name",
  "transcript",
  "reasoning",
  "reasoning_content",
  "thinking"
])
/** The names in Messages streams. */
export const generatedInMessages: Generated = new Set(["text", "thinking", "partial_json"])
/** The names in Responses streams, where all other events only repeat the deltas. */
export const generatedInResponses: Generated = new Set(["delta"])

/** The maximum length of a recognized name, in bytes. */
const nameMax = 24
/** The maximum length of an extracted value, in bytes. */
const valueMax = 16 * 1024
/** The maximum total size of the extracted values, in bytes. */
const totalMax = 256 * 1024
/** The maximum number of objects and arrays to enter. */
const enteredMax = 1_000

const quote = 0x22
const backslash = 0x5c

export const gistOf = (bytes: Buffer): Gist => {
  const gist = new Gist(generated)
  gist.take(bytes)
  return gist
}

export class Gist {
  private readonly names: Generated
  private root: JsonObject | undefined
  private over = false
  /** The open objects and arrays being searched, outermost first. */
  private readonly entered: Array<Record<string, unknown> | Array<unknown>> = []
  private count = 0
  private depth = 0

  private inString = false
  private escaped = false
  /** The position of the current string's start in the current chunk. */
  private from = 0
  /** The length and the first bytes of the current string in earlier chunks. */
  private before = 0
  private beginning = ""
  private counts = false
  /** The number of bytes in generated strings that have ended. */
  private counted = 0
  /** The last string, if it is short enough to be a name. */
  private text = ""
  /** The name of the next value. */
  private name = ""

  /** The name of the value being extracted, and the part of the value in earlier chunks. */
  private keeping: string | undefined
  private value = ""
  private valueFrom = 0
  private total = 0

  constructor(names: Generated) {
    this.names = names
  }

  /** Returns the number of bytes in generated strings so far. */
  get generated(): number {
    return this.counted + (this.inString && this.counts ? this.before : 0)
  }

  get isWhole(): boolean {
    return this.over
  }

  get object(): JsonObject {
    return this.root ?? {}
  }

  take(bytes: Buffer): void {
    this.from = 0
    this.valueFrom = 0
    for (let at = 0; at < bytes.length && !this.over; at++) {
      const byte = bytes[at]!
      if (!this.inString) this.outside(bytes, at, byte)
      else if (this.escaped) this.escaped = false
      else if (byte === backslash) this.escaped = true
      else if (byte === quote) this.stringEnds(bytes, at)
    }
    if (this.inString) {
      if (this.before < nameMax)
        this.beginning += bytes.toString("latin1", this.from, Math.min(bytes.length, this.from + nameMax))
      this.before += bytes.length - this.from
    }
    if (this.keeping !== undefined) this.keep(bytes, bytes.length)
  }

  private outside(bytes: Buffer, at: number, byte: number): void {
    switch (byte) {
      case quote:
        this.inString = true
        this.from = at + 1
        this.before = 0
        this.beginning = ""
        this.counts = this.names.has(this.name)
        return
      case 0x3a: // :
        this.name = this.text
        this.text = ""
        if (this.depth !== this.entered.length || !kept.has(this.name)) return
        this.keeping = this.name
        this.value = ""
        this.valueFrom = at + 1
        return
      case 0x7b: // {
      case 0x5b: // [
        this.opens(byte === 0x7b ? {} : [])
        return
      case 0x2c: // ,
        this.valueEnds(bytes, at)
        return
      case 0x7d: // }
      case 0x5d: // ]
        this.valueEnds(bytes, at)
        this.closes()
    }
  }

  private stringEnds(bytes: Buffer, at: number): void {
    const length = this.before + at - this.from
    if (this.counts) this.counted += length
    this.text = length > nameMax ? "" : this.beginning + bytes.toString("latin1", this.from, at)
    this.inString = false
    this.name = ""
  }

  private opens(container: Record<string, unknown> | Array<unknown>): void {
    const { depth, name } = this
    this.depth++
    this.name = ""
    this.text = ""
    if (depth !== this.entered.length || this.keeping !== undefined) return
    const outer = this.entered.at(-1)
    if (outer === undefined) {
      // An array before the object is ignored.
      if (Array.isArray(container)) this.depth--
      else this.entered.push((this.root = container))
      return
    }
    if (this.count === enteredMax || !(Array.isArray(outer) || entered.has(name))) return
    this.count++
    if (Array.isArray(outer)) outer.push(container)
    else outer[name] = container
    this.entered.push(container)
  }

  private closes(): void {
    if (this.depth === 0) return
    if (this.depth === this.entered.length) this.entered.pop()
    this.over = --this.depth === 0
  }

  /** Called when a value ends, at the next member or at the end of its object. */
  private valueEnds(bytes: Buffer, at: number): void {
    this.name = ""
    this.text = ""
    if (this.keeping === undefined || this.depth !== this.entered.length) return
    this.keep(bytes, at)
    const name = this.keeping
    this.keeping = undefined
    if (name === undefined) return
    // If an event has several data lines, each begins with `data:`.
    const json = Buffer.from(this.value, "latin1")
      .toString("utf8")
      .replaceAll(/\r?\n(?:data:)?/g, " ")
    const value = parsedOfVendor(json)
    const object = this.entered.at(-1)
    if (value !== undefined && isObject(object)) (object as Record<string, unknown>)[name] = value
  }

  private keep(bytes: Buffer, to: number): void {
    const length = to - this.valueFrom
    if (this.value.length + length > valueMax || this.total + length > totalMax) this.keeping = undefined
    else {
      this.total += length
      this.value += bytes.toString("latin1", this.valueFrom, to)
    }
  }
}
