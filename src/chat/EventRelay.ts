/**
 * A stream of server-sent events on its way from an upstream to a client, whatever protocol it is in: a `Reader` knows that. Bytes pass
 * through as they come; the last event waits until the charge is in the books.
 */
import type { Effect } from "effect"
import type { Readable } from "node:stream"
import type { Usage } from "../protocols/Usage.ts"
import { ByteStream } from "../upstream/ByteStream.ts"
import type { How, Source, Tap } from "../upstream/ByteStream.ts"
import { readOnFor } from "../kernel/ReadOn.ts"
import { tokensOfString } from "./Tokens.ts"

/** What has come of a stream. */
export interface Report {
  /** What the upstream has reported. */
  readonly usage: Usage
  /** Tokens of the answer, as far as the pieces tell. */
  readonly tokens_counted: number
  /** Ids by which the vendor keeps the answer and its parts, where they are noted. */
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
  /** Passes on what has come of an event that is too long to be looked at. */
  readonly skip: (bytes: Buffer, stream: Onward) => void
  /** Whether this is a whole event but for the blank line behind it. */
  readonly isWhole: (text: string) => boolean
  /** Whether the upstream has said that it has finished. */
  readonly isFinished: () => boolean
  readonly report: () => Report
  /** What the client has at the end, once the books have the charge. */
  readonly last: (how: How) => string | Buffer
}

/** An event longer than this is passed on without a look, and counted by its bytes. */
const eventMax = 8 * 1024 * 1024

export const blankLine = "\n\n"
const blankLineCrLf = "\r\n\r\n"

export const make = (upstream: Source, reader: Reader): Relay => {
  let rest: Buffer | undefined
  const tap: Tap = {
    data: (chunk, stream) => {
      const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk])
      const whole = endOfEvents(bytes)
      const all = whole === bytes.length
      rest = all ? undefined : bytes.subarray(whole)
      if (whole > 0) reader.take(all ? bytes : bytes.subarray(0, whole), stream)
      if (rest !== undefined && rest.length > eventMax) {
        reader.skip(rest, stream)
        rest = undefined
      }
    },
    end: (stream) => {
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
    begun: stream.begun,
    ended: stream.ended,
    report: reader.report,
    finish: (how) => stream.finish(reader.last(how)),
    cut: () => stream.cut("the end of the call is not in the books yet")
  }
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
