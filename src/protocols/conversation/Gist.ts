/**
 * The gist of a JSON object that is too long to be kept: its usage, how the answer ended, and how many bytes of it were generated. The
 * bytes are read as they come, in bounded memory. One gist serves all protocols, since no two of them give a name two meanings.
 */
import type { JsonObject } from "./Conversation.ts"
import { isObject, parsed } from "./Json.ts"

/** The members whose value is kept, in the object itself and in what is `entered`. */
const kept: ReadonlySet<string> = new Set([
  "type",
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

/** The names of generated strings. A name that only repeats what other events have said is not among them. */
export type Generated = ReadonlySet<string>

/** Those of whole answers, and of most streams. */
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
/** Those of the streams of `messages`. */
export const generatedInMessages: Generated = new Set(["text", "thinking", "partial_json"])
/** Those of the streams of `responses`: every other event says the pieces again. */
export const generatedInResponses: Generated = new Set(["delta"])

/** The longest name that is known. */
const nameMax = 24
/** The longest value that is kept. */
const valueMax = 16 * 1024
/** How much is kept in all. */
const totalMax = 256 * 1024
/** How many objects are entered. */
const enteredMax = 1_000

const quote = 0x22
const backslash = 0x5c

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
  /** Where the string began, in the bytes that are read. */
  private from = 0
  /** What came of it before those bytes: its length, and its beginning. */
  private before = 0
  private beginning = ""
  private counts = false
  /** How many bytes the generated strings have that have ended. */
  private counted = 0
  /** The last string, where it is short enough for a name. */
  private text = ""
  /** The name whose value comes next. */
  private name = ""

  /** The name whose value is being kept, and what came of it before the bytes that are read. */
  private keeping: string | undefined
  private value = ""
  private valueFrom = 0
  private total = 0

  constructor(names: Generated) {
    this.names = names
  }

  /** How many bytes the generated strings have, as far as they have come. */
  get generated(): number {
    return this.counted + (this.inString && this.counts ? this.before : 0)
  }

  /** Whether the object has ended. */
  get isWhole(): boolean {
    return this.over
  }

  /** What is kept of it. */
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
      // What stands before the object is not a part of it.
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
    // Lines of an event that has several begin with the name of their field.
    const json = Buffer.from(this.value, "latin1")
      .toString("utf8")
      .replaceAll(/\r?\n(?:data:)?/g, " ")
    const value = parsed(json)
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
