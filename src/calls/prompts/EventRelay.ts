/**
 * A stream of server-sent events on its way from an upstream to a client, whatever protocol it is in: a `Reader` knows that. Bytes pass
 * through as they come; the last event waits until the charge is in the books.
 */
import type { Effect } from "effect"
import type { Readable } from "node:stream"
import { Gist } from "../../protocols/conversation/Gist.ts"
import type { Generated } from "../../protocols/conversation/Gist.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import { ByteStream } from "../../upstream/wire/ByteStream.ts"
import type { How, Source, Tap } from "../../upstream/wire/ByteStream.ts"
import { readOnFor } from "../../kernel/ReadOn.ts"
import { bytesAToken, tokensOfString } from "./Tokens.ts"

/** What has come of a stream. */
export interface Report {
  /** What the upstream has reported. */
  readonly usage: Usage
  /** Tokens of the answer, as far as the pieces tell. */
  readonly tokens_counted: number
  /** The vendor's ids of the kept answer and its parts, if the reader notes them. */
  readonly handed_out?: ReadonlyArray<string> | undefined
}

export interface Relay {
  /** What the client reads. */
  readonly body: Readable
  /** Whether the client is to have anything: answered with the first of it, or with an end that nothing came before. */
  readonly begun: Effect.Effect<boolean>
  /** Ends once, whatever the client does: `broken` also where the upstream sent an error, or did not say that it has finished. */
  readonly ended: Effect.Effect<How>
  readonly report: () => Report
  /** Lets the client have the end, after the books have it. */
  readonly finish: (how: How) => void
  /** Cuts the client off without an end: the books could not have it in time. */
  readonly cut: () => void
}

/** What a reader passes events on to. */
export type Onward = Pick<ByteStream, "pass" | "end" | "abort">

/** Looks at the events of one stream, in the protocol of its upstream. */
export interface Reader {
  /** Looks at whole events; passes on, in one piece, what the client is to have of them. An event that says a failure ends the stream. */
  readonly take: (events: Buffer, stream: Onward) => void
  /** Passes on a chunk of an event that is too long to buffer. */
  readonly skip: (bytes: Buffer, stream: Onward) => void
  /** That event has ended. Passes on its blank line, or keeps it for the end. Answers `false` where the event says a failure. */
  readonly skipped: (event: Skipped, stream: Onward) => boolean
  /** The names of the strings that count as generated in such an event. */
  readonly generated: Generated
  /** Whether this is a whole event but for the blank line behind it. */
  readonly isWhole: (text: string) => boolean
  /** Whether the upstream has said that it has finished. */
  readonly isFinished: () => boolean
  readonly report: () => Report
  /** What the client has at the end, once the books have the charge. */
  readonly last: (how: How) => string | Buffer
}

/** An event that was too long to be kept. */
export interface Skipped {
  /** The event without what is long in it: what is left of its JSON is its gist. */
  readonly text: string
  /** How many tokens were generated in it. */
  readonly tokens: number
  /** The blank line that ends it, which has not been passed on. */
  readonly blank: Buffer
}

/** An event longer than this is not kept: its bytes pass as they come, and its gist is read. */
const eventMax = 8 * 1024 * 1024

export const blankLine = "\n\n"
const blankLineCrLf = "\r\n\r\n"

export const make = (upstream: Source, reader: Reader): Relay => {
  let rest: Buffer | undefined
  let long: LongEvent | undefined
  const tap: Tap = {
    data: (chunk, stream) => {
      let bytes = chunk
      if (long !== undefined) {
        const behind = long.take(chunk, stream)
        if (behind === undefined) return
        long = undefined
        if (behind.length === 0) return
        bytes = behind
      } else if (rest !== undefined) bytes = Buffer.concat([rest, chunk])
      const whole = endOfEvents(bytes)
      const all = whole === bytes.length
      rest = all ? undefined : bytes.subarray(whole)
      if (whole > 0) reader.take(all ? bytes : bytes.subarray(0, whole), stream)
      if (rest !== undefined && rest.length > eventMax) {
        long = new LongEvent(reader)
        long.take(rest, stream)
        rest = undefined
      }
    },
    end: (stream) => {
      if (long?.isWhole === true && long.ends(Buffer.from(blankLine), stream)) long = undefined
      // The last event may lack its blank line, but one that was cut in its midst is nothing to pass on.
      if (rest !== undefined && reader.isWhole(rest.toString("latin1"))) {
        reader.take(Buffer.concat([rest, Buffer.from(blankLine)]), stream)
      }
      return reader.isFinished() ? "complete" : "broken"
    }
  }

  const stream = new ByteStream(upstream, { read_on: readOnFor, tap })
  return {
    body: stream.body,
    begun: stream.begun(true),
    ended: stream.ended,
    report: () => {
      const report = reader.report()
      return long === undefined ? report : { ...report, tokens_counted: report.tokens_counted + long.tokens }
    },
    finish: (how) => {
      const last = reader.last(how)
      // The client may have half an event: end it before the error event.
      stream.finish(long === undefined ? last : blankLine + last.toString("latin1"))
    },
    cut: () => stream.cut("the end of the call is not in the books yet")
  }
}

/** The longest lines that are read before the data of a long event. */
const headMax = 1_024

/** An event that is too long to buffer, while it arrives. */
class LongEvent {
  private readonly reader: Reader
  private readonly gist: Gist
  /** Its lines before its data. */
  private head: string | undefined
  /** Line ends that may be the beginning of its blank line. */
  private held: Buffer = empty

  constructor(reader: Reader) {
    this.reader = reader
    this.gist = new Gist(reader.generated)
  }

  /** How many tokens of it have come. */
  get tokens(): number {
    return Math.round(this.gist.generated / bytesAToken)
  }

  /** Whether all of its data has come. */
  get isWhole(): boolean {
    return this.gist.isWhole
  }

  /** Passes the event's bytes on and returns the bytes after it, `undefined` if the event continues or reports a failure. */
  take(chunk: Buffer, stream: Onward): Buffer | undefined {
    const before = this.held.length
    const bytes = before === 0 ? chunk : Buffer.concat([this.held, chunk])
    const { at, length } = firstBlankLine(bytes)
    const end = at === -1 ? lineEndsFrom(bytes) : at
    this.note(at === -1 ? chunk : chunk.subarray(0, Math.max(0, at - before)))
    this.reader.skip(bytes.subarray(0, end), stream)
    if (at === -1) {
      this.held = bytes.subarray(end)
      return undefined
    }
    this.held = empty
    return this.ends(bytes.subarray(at, at + length), stream) ? bytes.subarray(at + length) : undefined
  }

  /** Whether the stream continues after the event. */
  ends(blank: Buffer, stream: Onward): boolean {
    const text = `${this.head ?? ""}data: ${JSON.stringify(this.gist.object)}${blankLine}`
    const skipped = { text, tokens: this.tokens, blank: Buffer.concat([this.held, blank]) }
    if (this.reader.skipped(skipped, stream)) return true
    stream.end("broken")
    stream.abort()
    return false
  }

  private note(bytes: Buffer): void {
    const data = this.head === undefined ? bytes.subarray(0, headMax).indexOf("data:") : 0
    this.head ??= bytes.toString("latin1", 0, Math.max(0, data))
    this.gist.take(bytes.subarray(Math.max(0, data)))
  }
}

const empty = Buffer.alloc(0)

const firstBlankLine = (bytes: Buffer): { readonly at: number; readonly length: number } => {
  const lf = bytes.indexOf(blankLine)
  const crlf = bytes.indexOf(blankLineCrLf)
  return crlf !== -1 && (lf === -1 || crlf < lf)
    ? { at: crlf, length: blankLineCrLf.length }
    : { at: lf, length: blankLine.length }
}

/** Start of the trailing line ends. */
const lineEndsFrom = (bytes: Buffer): number => {
  let from = bytes.length
  while (
    from > 0 &&
    bytes.length - from < blankLineCrLf.length &&
    (bytes[from - 1] === 0x0a || bytes[from - 1] === 0x0d)
  )
    from--
  return from
}

/** How events are looked at that are not all alike. */
export interface Looking {
  /**
   * Where the events end, from `at` on, that pass as they are and have been counted; `at` itself where the next is to be looked at. Events
   * end with `blank`.
   */
  readonly pass: (text: string, at: number, blank: string) => number
  /** Looks at one event; answers what the client is to have of it, as `eachEvent` says. */
  readonly look: (event: string) => string | undefined
  /** What the client is to have of events that pass: those themselves, where it is left out. */
  readonly shown?: ((run: string) => string) | undefined
}

/**
 * Passes events on, in one piece, as `look` says of each: itself, another, nothing (empty), or `undefined`: it says a failure, which
 * ends the stream. What an upstream says after an error, and of it, is not for the client: it may name addresses and keys. `text` is
 * the events as Latin-1, a character for each byte: searching a string costs a fraction of searching a buffer. Looking begins at `at`.
 */
export const eachEvent = (events: Buffer, text: string, { look, pass, shown }: Looking, stream: Onward): void => {
  const blank = blankIn(text)
  let output = ""
  let from = 0
  /** How many bytes pass untouched before the first that do not. */
  let untouched = 0
  for (let at = 0; at < text.length;) {
    const passed = pass(text, at, blank)
    if (shown !== undefined && passed > at) {
      output += text.slice(from, at) + shown(text.slice(at, passed))
      from = passed
      untouched = Number.NaN
    }
    if (passed === text.length) break
    const next = endOfEvent(text, passed, blank)
    const event = text.slice(passed, next)
    const replaced = look(event)
    if (replaced !== event) {
      if (from === 0) untouched = passed
      output += text.slice(from, passed)
      if (replaced === undefined) {
        stream.pass(Buffer.from(output, "latin1"))
        stream.end("broken")
        stream.abort()
        return
      }
      output += replaced
      from = next
    }
    at = next
  }
  if (from === 0) stream.pass(events)
  // Nothing stands behind them: the last events wait, or are not for the client.
  else if (from === text.length && output.length === untouched) stream.pass(events.subarray(0, untouched))
  else stream.pass(Buffer.from(output + text.slice(from), "latin1"))
}

/** What stands between the events of a text. */
const blankIn = (text: string): string => (text.includes(blankLineCrLf) ? blankLineCrLf : blankLine)

/** Where the event ends that begins at `at`. */
export const endOfEvent = (text: string, at: number, blank: string): number => {
  const found = text.indexOf(blank, at)
  return found === -1 ? text.length : found + blank.length
}

/** Events in a row that hold only pieces of an answer. */
export interface Run {
  /** Where they end: at the first that must be looked into, or with the text. */
  readonly end: number
  /** How many tokens their pieces have. */
  readonly tokens: number
}

/**
 * The run that begins at `from`. `marks` finds pieces (its first group, behind which their string begins), and whatever makes it necessary
 * to look into an event.
 */
export const runOf = (marks: RegExp, text: string, from: number, blank: string): Run => {
  let tokens = 0
  /** Those of the event from `start` to `end`, which count only if it belongs to the run. */
  let ofEvent = 0
  let start = from
  let end = from
  marks.lastIndex = from
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    while (mark.index >= end) {
      tokens += ofEvent
      ofEvent = 0
      start = end
      end = endOfEvent(text, start, blank)
    }
    const piece = marks.lastIndex
    const pieceEnd = mark[1] === undefined ? -1 : endOfString(text, piece)
    if (pieceEnd === -1) return { end: start, tokens }
    ofEvent += tokensOfString(pieceEnd - piece)
    marks.lastIndex = pieceEnd + 1
  }
  return { end: text.length, tokens: tokens + ofEvent }
}

/** Where the last whole event ends. Carriage returns count as part of the line they end. */
const endOfEvents = (bytes: Buffer): number => {
  const { length } = bytes
  if (bytes[length - 1] === 0x0a && bytes[length - 2] === 0x0a) return length
  const lf = bytes.lastIndexOf(blankLine)
  const crlf = bytes.lastIndexOf(blankLineCrLf)
  return Math.max(lf === -1 ? 0 : lf + 2, crlf === -1 ? 0 : crlf + 4)
}

/** The JSON of an event, which may stand in several lines. Read by hand: to split by a regular expression took most of the time of `parse`. */
export const dataOf = (event: string): string => {
  let data: string | undefined
  for (let from = 0; from < event.length;) {
    const found = event.indexOf("\n", from)
    const end = found === -1 ? event.length : found
    if (event.startsWith("data:", from)) {
      const isCrLf = found > from && event.charCodeAt(found - 1) === 0x0d
      const line = event.slice(from + 5, isCrLf ? end - 1 : end)
      data = data === undefined ? line : `${data}\n${line}`
    }
    from = end + 1
  }
  return data ?? ""
}

const beyondAscii = /[\u0080-\u00ff]/

/** The object in an event, whose bytes are given as Latin-1, a character for each. */
export const parse = (event: string): Record<string, unknown> | undefined => {
  const data = dataOf(event)
  try {
    const value: unknown = JSON.parse(beyondAscii.test(data) ? Buffer.from(data, "latin1").toString("utf8") : data)
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Where a string ends that ends in its line, as every string of JSON does; else -1. */
export const endOfString = (text: string, from: number): number => {
  for (let at = from; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === 0x22) return at
    if (character === 0x0a) return -1
    if (character === 0x5c && text.charCodeAt(at + 1) !== 0x0a) at++
  }
  return -1
}
