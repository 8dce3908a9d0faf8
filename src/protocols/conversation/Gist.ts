/**
 * The gist of a JSON object that is too long to be kept, or cannot be parsed: its usage, how the answer ended, and the number of generated
 * bytes. The bytes are read as they come, in bounded memory. One gist serves all protocols, since a name has one meaning in all of them.
 */
import type { JsonObject } from "./Conversation.ts"
import { isObject, parsedOfVendor } from "./Json.ts"

/** The members whose value is kept, in the object itself and in the objects that are `entered`. */
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
/** The members whose objects are looked into. */
const entered: ReadonlySet<string> = new Set(["response", "message", "delta", "choices", "candidates"])

/** The names of generated strings. Names that only repeat earlier events are not among them. */
export type Generated = ReadonlySet<string>

/** The names in whole answers and in most streams. */
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
/** The names in the streams of `messages`. */
export const generatedInMessages: Generated = new Set(["text", "thinking", "partial_json"])
/** The names in the streams of `responses`. The other events repeat the pieces. */
export const generatedInResponses: Generated = new Set(["delta"])

/** The longest name that is known. */
const nameMax = 24
/** The longest value that is kept. */
const valueMax = 16 * 1024
/** The most that is kept in all. */
const totalMax = 256 * 1024
/** The number of objects that are entered. */
const enteredMax = 1_000

const quote = 0x22
const backslash = 0x5c

/** The gist of a whole answer that has come already. */
export const gistOf = (bytes: Buffer): Gist => {
  const gist = new Gist(generated)
  gist.take(bytes)
  return gist
}

export class Gist {
  private readonly names: Generated
  private root: JsonObject | undefined
  private over = false
  /** The objects and lists that are open and looked into, from the outermost. */
  private readonly entered: Array<Record<string, unknown> | Array<unknown>> = []
  private count = 0
  private depth = 0

  private inString = false
  private escaped = false
  /** The start of the string in the current bytes. */
  private from = 0
  /** The length and the beginning of the string before the current bytes. */
  private before = 0
  private beginning = ""
  private counts = false
  /** The number of bytes in the generated strings that have ended. */
  private counted = 0
  /** The last string, if it is short enough for a name. */
  private text = ""
  /** The name whose value comes next. */
  private name = ""

  /** The name whose value is being kept, and its value before the current bytes. */
  private keeping: string | undefined
  private value = ""
  private valueFrom = 0
  private total = 0

  constructor(names: Generated) {
    this.names = names
  }

  /** The number of bytes in the generated strings so far. */
  get generated(): number {
    return this.counted + (this.inString && this.counts ? this.before : 0)
  }

  /** Whether the object has ended. */
  get isWhole(): boolean {
    return this.over
  }

  /** The members that are kept. */
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
      // A list before the object is not a part of it.
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

  /** A member's value ends where the next begins, or with the object. */
  private valueEnds(bytes: Buffer, at: number): void {
    this.name = ""
    this.text = ""
    if (this.keeping === undefined || this.depth !== this.entered.length) return
    this.keep(bytes, at)
    const name = this.keeping
    this.keeping = undefined
    if (name === undefined) return
    // In an event with several lines, each line begins with the name of its field.
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
