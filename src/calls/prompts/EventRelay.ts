/**
 * Relays a stream of server-sent events from an upstream to a client. A `Reader` implements the protocol. Bytes are passed on as they arrive. Only
 * the last event is withheld until the charge is committed.
 *
 * Where the specification is silent:
 * - A finished stream is complete, even if the connection breaks afterwards or the client has disconnected.
 * - A stream without an end is broken if the connection broke or an event reports an error. It is unfinished if the upstream ended it early or
 *   exceeded its timeout. In both cases, the client gets an error event. An unfinished stream costs the output so far. A stream is also unfinished if
 *   it fails after its client has delayed it by ten seconds in total, because reading slowly must not make a completion free.
 */
import type { Effect } from "effect"
import type { Readable } from "node:stream"
import { Gist } from "../../protocols/conversation/Gist.ts"
import { parsedOfVendor } from "../../protocols/conversation/Json.ts"
import type { Generated } from "../../protocols/conversation/Gist.ts"
import type { Usage } from "../../protocols/conversation/Usage.ts"
import { ByteStream } from "../../upstream/wire/ByteStream.ts"
import type { StreamEnd, Source, Stop, Tap } from "../../upstream/wire/ByteStream.ts"
import { BodyHasher } from "../../upstream/wire/BodyHash.ts"
import { readOnFor } from "../../kernel/ReadOn.ts"
import { bytesAToken, tokensOfString } from "./Tokens.ts"

/** The figures that a reader has collected from a stream so far. */
export interface Report {
  readonly usage: Usage
  /** The number of completion tokens, counted from the deltas. */
  readonly tokens_counted: number
  /** The vendor's ids for the stored response and its parts, if the reader records them. */
  readonly handed_out?: ReadonlyArray<string> | undefined
}

export interface Relay {
  readonly body: Readable
  /** Waits for the first bytes for the client. Returns `false` if the stream ends without any. */
  readonly begun: Effect.Effect<boolean>
  /** Waits for the stream to end, even after the client has disconnected. */
  readonly ended: Effect.Effect<StreamEnd>
  readonly report: () => Report
  /**
   * Returns the hash of the client's complete body, including the end that `finish` sends, or `undefined` if the client has disconnected. Call it
   * once, after the stream has ended.
   */
  readonly hash: (how: StreamEnd) => string | undefined
  /** Sends the end of the stream to the client, once the charge is committed. */
  readonly finish: (how: StreamEnd) => void
  /** Disconnects the client before the last event, because the charge is not committed. */
  readonly cut: () => void
}

/** The stream methods that readers use. */
export type StreamSink = Pick<ByteStream, "pass" | "end" | "abort">

/** A reader of one stream's events in the upstream's protocol. */
export interface Reader {
  /** Reads complete events and passes on the client's version in one chunk. An event that reports an error ends the stream. */
  readonly take: (events: Buffer, stream: StreamSink) => void
  /** Passes on a chunk of an event that is too long to buffer. */
  readonly skip: (bytes: Buffer, stream: StreamSink) => void
  /** Handles the end of a long event: passes on its blank line or withholds it until the end. Returns `false` if the event reports an error. */
  readonly skipped: (event: Skipped, stream: StreamSink) => boolean
  /** The names of a long event's members that contain generated strings. */
  readonly generated: Generated
  /** The maximum size of an event to buffer, in bytes. A longer event is passed on as it arrives, and only its gist is read. */
  readonly event_bytes_max: number
  /** Returns whether the string is a complete event without its blank line. */
  readonly isWhole: (text: string) => boolean
  /** Returns whether the upstream has finished its response. Later events are not read. */
  readonly isFinished: () => boolean
  readonly report: () => Report
  /** Returns the last bytes for the client, to send once the charge is committed. */
  readonly last: (how: StreamEnd) => string | Buffer
}

/** An event that was too long to buffer and has ended. */
export interface Skipped {
  /** The event, reduced to the gist of its JSON. */
  readonly text: string
  readonly tokens: number
  /** The event's blank line, which has not been passed on yet. */
  readonly blank: Buffer
}

/** The maximum size, in bytes, of an event to buffer if events are passed on unchanged. The serving thread never parses a longer event. */
export const passedEventMax = 1024 * 1024

export const blankLine = "\n\n"
const blankLineCrLf = "\r\n\r\n"
/** The maximum number of a blank line's bytes before a chunk boundary. */
const seamBytesMax = blankLineCrLf.length - 1

const empty = Buffer.alloc(0)

/** The outcome of an incomplete stream, by the reason why its bytes stopped. */
const incompleteEnds: Readonly<Record<Stop, StreamEnd>> = {
  ended: "unfinished",
  short: "unfinished",
  cut: "broken",
  left: "left"
}

export const make = (upstream: Source, reader: Reader): Relay => {
  /** The beginning of an incomplete event. */
  const rest = new EventBuffer()
  let long: LongEvent | undefined
  const tap: Tap = {
    data: (chunk, stream) => {
      let bytes = chunk
      if (long !== undefined) {
        const following = long.take(chunk, stream)
        if (following === undefined) return
        long = undefined
        if (following.length === 0) return
        bytes = following
      }
      const whole = rest.length === 0 ? endOfEvents(bytes) : rest.endIn(bytes)
      const all = whole === bytes.length
      if (whole > 0) reader.take(rest.taken(all ? bytes : bytes.subarray(0, whole)), stream)
      if (all) return
      rest.add(whole === 0 ? bytes : bytes.subarray(whole))
      if (rest.length > reader.event_bytes_max) {
        long = new LongEvent(reader)
        long.take(rest.taken(), stream)
      }
    },
    end: (stream, stop) => {
      if (long?.isWhole === true && long.ends(Buffer.from(blankLine), stream)) long = undefined
      // The last event can lack its blank line. A truncated event is not passed on.
      const last = rest.taken()
      if (last.length > 0 && reader.isWhole(last.toString("latin1"))) {
        reader.take(Buffer.concat([last, Buffer.from(blankLine)]), stream)
      }
      if (!reader.isFinished()) return incompleteEnds[stop]
      // The client has received only part of the long event, so its response is incomplete.
      return long === undefined ? "complete" : "unfinished"
    }
  }

  const stream = new ByteStream(upstream, { read_on: readOnFor, tap, hasher: new BodyHasher() })
  let closing: Buffer | undefined
  const closingOf = (how: StreamEnd): Buffer => {
    const last = reader.last(how)
    // The client may have received part of a long event. That event must be closed before the error event.
    const text = long === undefined ? last : blankLine + last.toString("latin1")
    return typeof text === "string" ? Buffer.from(text) : text
  }
  return {
    body: stream.body,
    begun: stream.begun(true),
    ended: stream.ended,
    report: () => {
      const report = reader.report()
      return long === undefined ? report : { ...report, tokens_counted: report.tokens_counted + long.tokens }
    },
    hash: (how) => stream.hashWith((closing = closingOf(how))),
    finish: (how) => stream.finish(closing ?? closingOf(how)),
    cut: () => stream.cut("the charge is not committed yet")
  }
}

/** The beginning of an event, in chunks. Each chunk is searched only once, apart from its last bytes. */
class EventBuffer {
  private pieces: Array<Buffer> = []
  /** The last bytes. They may be part of a blank line. */
  private tail: Buffer = empty
  length = 0

  add(piece: Buffer): void {
    this.pieces.push(piece)
    this.length += piece.length
    this.tail = Buffer.concat([this.tail, piece.subarray(-seamBytesMax)]).subarray(-seamBytesMax)
  }

  /** Returns the end of the last complete event, as a position in the next bytes, or 0 if there is none. */
  endIn(next: Buffer): number {
    const end = endOfEvents(next)
    if (end > 0) return end
    const seamEnd = endOfEvents(Buffer.concat([this.tail, next.subarray(0, seamBytesMax)]))
    return seamEnd === 0 ? 0 : seamEnd - this.tail.length
  }

  /** Removes all chunks and returns them, followed by `next`. */
  taken(next: Buffer = empty): Buffer {
    if (this.length === 0) return next
    const all = Buffer.concat([...this.pieces, next])
    this.pieces = []
    this.tail = empty
    this.length = 0
    return all
  }
}

/** The maximum number of bytes before a long event's data. */
const headMax = 1_024

/** An event that is too long to buffer, while it arrives. */
class LongEvent {
  private readonly reader: Reader
  private readonly gist: Gist
  /** The lines before the data. */
  private head: string | undefined
  /** Line ends that may belong to the blank line. */
  private held: Buffer = empty

  constructor(reader: Reader) {
    this.reader = reader
    this.gist = new Gist(reader.generated)
  }

  get tokens(): number {
    return Math.round(this.gist.generated / bytesAToken)
  }

  /** Returns whether all data has arrived. */
  get isWhole(): boolean {
    return this.gist.isWhole
  }

  /** Passes on the event's bytes. Returns the bytes that follow the event, or `undefined` if the event continues or reports an error. */
  take(chunk: Buffer, stream: StreamSink): Buffer | undefined {
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

  /** Ends the event. Returns `false` if it reports an error, which ends the stream. */
  ends(blank: Buffer, stream: StreamSink): boolean {
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

const firstBlankLine = (bytes: Buffer): { readonly at: number; readonly length: number } => {
  const lf = bytes.indexOf(blankLine)
  const crlf = bytes.indexOf(blankLineCrLf)
  return crlf !== -1 && (lf === -1 || crlf < lf)
    ? { at: crlf, length: blankLineCrLf.length }
    : { at: lf, length: blankLine.length }
}

/** Returns the start of the trailing line ends, but at most four bytes before the end. */
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

export interface EventInspector {
  /** Counts plain events from `at` and returns the position after them. Returns `at` if the next event must be inspected. Events end with `blank`. */
  readonly pass: (text: string, at: number, blank: string) => number
  /** Inspects one event and returns the client's version. See `eachEvent`. */
  readonly look: (event: string) => string | undefined
  /** Returns the client's version of plain events. Without this function, they are passed on unchanged. */
  readonly shown?: ((run: string) => string) | undefined
}

/**
 * Passes events on in one chunk, or none if nothing remains. `look` returns the client's version of an event: the event itself, another string, or an
 * empty string. If the event reports an error, `look` returns `undefined` and the stream ends. The client receives neither this event nor any later
 * event, because they may contain addresses and keys. `text` contains the events as Latin-1, one character per byte, because searching a string is
 * much faster than searching a buffer.
 */
export const eachEvent = (
  events: Buffer,
  text: string,
  { look, pass, shown }: EventInspector,
  stream: StreamSink
): void => {
  const blank = blankIn(text)
  let output = ""
  let from = 0
  /** The number of bytes before the first event that was changed. */
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
  // Only events at the end were changed, and they were removed.
  else if (from === text.length && output.length === untouched) stream.pass(events.subarray(0, untouched))
  else stream.pass(Buffer.from(output + text.slice(from), "latin1"))
}

/** Returns the blank line that separates the events in a string. */
const blankIn = (text: string): string => (text.includes(blankLineCrLf) ? blankLineCrLf : blankLine)

/** Returns the end of the event that begins at `at`, including its blank line. */
export const endOfEvent = (text: string, at: number, blank: string): number => {
  const found = text.indexOf(blank, at)
  return found === -1 ? text.length : found + blank.length
}

/** Consecutive events that contain only deltas. */
export interface Run {
  /** The end of the run: the first event that must be inspected, or the end of the string. */
  readonly end: number
  readonly tokens: number
}

/**
 * Finds the run that begins at `from`. If the first group of `marks` participates in a match, a delta's string begins after the match. Any other
 * match means that the event must be inspected.
 */
export const runOf = (marks: RegExp, text: string, from: number, blank: string): Run => {
  let tokens = 0
  /** The tokens in the event from `start` to `end`. They count only if the event belongs to the run. */
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

/** Returns the end of the last complete event, or 0 if there is none. A carriage return belongs to the line that it ends. */
const endOfEvents = (bytes: Buffer): number => {
  const { length } = bytes
  if (bytes[length - 1] === 0x0a && bytes[length - 2] === 0x0a) return length
  const lf = bytes.lastIndexOf(blankLine)
  const crlf = bytes.lastIndexOf(blankLineCrLf)
  return Math.max(lf === -1 ? 0 : lf + 2, crlf === -1 ? 0 : crlf + 4)
}

/** Returns an event's data, which can span several lines. Splitting with a regular expression would take most of `parse`'s time. */
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

const nonAscii = /[\u0080-\u00ff]/

/** Parses the object in an event, or returns `undefined` if there is none. `event` is Latin-1, one character per byte. */
export const parse = (event: string): Record<string, unknown> | undefined => {
  const data = dataOf(event)
  const value = parsedOfVendor(nonAscii.test(data) ? Buffer.from(data, "latin1").toString("utf8") : data)
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined
}

/** Returns the end of a JSON string, or -1 if it does not end on its line. */
export const endOfString = (text: string, from: number): number => {
  for (let at = from; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === 0x22) return at
    if (character === 0x0a) return -1
    if (character === 0x5c && text.charCodeAt(at + 1) !== 0x0a) at++
  }
  return -1
}
