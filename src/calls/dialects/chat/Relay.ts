/**
 * Reads the streams of chat and text completions to find their usage, errors and end.
 *
 * Where the specification is silent:
 * - The last event, `[DONE]`, is sent once the charge is committed, so a client that receives it can read the charge.
 * - A broken stream ends with a chunk `{ "error": … }` and then `[DONE]`.
 * - Unless the client requested usage, the member `usage` is removed from each chunk. All other bytes are unchanged.
 */
import { usageOf } from "../../../protocols/chat/Usage.ts"
import { generated } from "../../../protocols/conversation/Gist.ts"
import { noUsage as nothingReported } from "../../../protocols/conversation/Usage.ts"
import type { StreamEnd } from "../../../upstream/wire/ByteStream.ts"
import {
  blankLine,
  dataOf,
  eachEvent,
  endOfEvent,
  endOfString,
  parse,
  passedEventMax
} from "../../prompts/EventRelay.ts"
import type { EventInspector, Reader, Run } from "../../prompts/EventRelay.ts"
import { tokensIn, tokensOfString } from "../../prompts/Tokens.ts"

/** The usual end of an event without usage. The reader can remove the member without parsing the event. */
const noUsage = `,"usage":null}${blankLine}`
const withoutNoUsage = `}${blankLine}`
/** Matches an event that ends a response. In earlier events, `finish_reason` is null or an empty string. */
const finishes = /"finish_reason"\s*:\s*"[^"]/
const isDone = /^data: ?\[DONE\]\s*$/

export const done = "data: [DONE]\n\n"
const brokenOff = `data: ${JSON.stringify({
  error: { message: "the model's stream ended early", type: "upstream_error", code: "upstream_error" }
})}\n\n${done}`
export const broken = (): string => brokenOff

export const reader = (options: { readonly show_usage: boolean }): Reader => {
  let usage: unknown
  let id: unknown
  let tokens_counted = 0
  let finished = false

  /** Inspects an event and returns the client's version: the event itself, a changed one, or an empty string. Returns `undefined` for an error. */
  const look = (text: string): string | undefined => {
    if (text.includes("[DONE]") && isDone.test(text)) {
      finished = true
      return ""
    }
    finished ||= finishes.test(text)
    tokens_counted += tokensIn(text)
    const failing = text.includes('"error"')
    if (!failing && !text.includes('"usage"')) return text
    if (!failing && text.endsWith(noUsage)) {
      return options.show_usage ? text : `${text.slice(0, -noUsage.length)}${withoutNoUsage}`
    }

    const data = parse(text)
    if (data === undefined) return text
    const counted = typeof data.usage === "object" && data.usage !== null
    if (counted) {
      usage = data.usage
      id = data.id
    }
    if (isFailure(data)) return undefined
    if (options.show_usage || data.usage === undefined) return text
    const empty = !Array.isArray(data.choices) || data.choices.length === 0
    return counted && empty ? "" : withoutUsage(text)
  }

  let returns = false
  const pass: EventInspector["pass"] = (text, at, blank) => {
    const run = runOf(text, at, blank, returns)
    finished ||= run.finishes
    tokens_counted += run.tokens
    return run.end
  }
  const shown = options.show_usage ? undefined : (run: string) => run.replaceAll(noUsage, withoutNoUsage)
  const looking: EventInspector = { look, pass, shown }

  const take: Reader["take"] = (events, stream) => {
    const text = events.toString("latin1")
    returns = text.includes("\r")
    eachEvent(events, text, looking, stream)
  }

  return {
    take,
    skip: (bytes, stream) => stream.pass(bytes),
    skipped: ({ blank, text, tokens }, stream) => {
      tokens_counted += tokens
      if (look(text) === undefined) return false
      stream.pass(blank)
      return true
    },
    generated,
    event_bytes_max: passedEventMax,
    isWhole: (text) => isDone.test(text) || parse(text) !== undefined,
    isFinished: () => finished,
    report: () => ({ usage: usageOf(usage, id) ?? nothingReported, tokens_counted }),
    last: (how: StreamEnd) => (how === "complete" ? done : brokenOff)
  }
}

/** Returns whether a response or event reports an error. Some vendors send `"error":null` if there is none. */
export const isFailure = ({ error }: Readonly<Record<string, unknown>>): boolean =>
  error !== undefined && error !== null

/** Consecutive events that contain only deltas. */
interface PlainRun extends Run {
  /** Whether one of the events ends the response. */
  readonly finishes: boolean
}

/** Matches the names of generated strings, a `finish_reason`, the `usage` in `noUsage`, and everything that marks an event to inspect. */
const marks =
  /"(?:(content|text|refusal|arguments|input|name|transcript|reasoning|reasoning_content|thinking)"\s*:\s*"|(finish_reason)"\s*:\s*"[^"]|usage"(:null\}\n\n)?|error"|reasoning_details")|\[DONE\]/g

/**
 * Finds the run that begins at `from`. It ends before an event that contains more than deltas or is formatted unusually. Scanning a run takes about
 * half as long as inspecting each event. `returns` is true if the string contains carriage returns.
 */
const runOf = (text: string, from: number, blank: string, returns: boolean): PlainRun => {
  let tokens = 0
  /** The tokens in the event from `start` to `end`. They count only if the event belongs to the run. */
  let ofEvent = 0
  let start = from
  let end = from
  let finishes = false
  let thought: string | undefined
  marks.lastIndex = from
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    while (mark.index >= end) {
      tokens += ofEvent
      ofEvent = 0
      start = end
      end = endOfEvent(text, start, blank)
    }
    const name = mark[1]
    if (name !== undefined) {
      // An event can repeat the same reasoning under several names. It counts only once.
      if (isThought(name) && (thought ??= name) !== name) return { end: start, tokens, finishes }
      const piece = marks.lastIndex
      const pieceEnd = endOfString(text, piece)
      if (pieceEnd === -1) return { end: start, tokens, finishes }
      ofEvent += tokensOfString(pieceEnd - piece)
      marks.lastIndex = pieceEnd + 1
    } else if (mark[2] !== undefined) finishes = true
    else if (mark[3] === undefined || text[mark.index - 1] !== "," || returns) return { end: start, tokens, finishes }
  }
  return { end: text.length, tokens: tokens + ofEvent, finishes }
}

const isThought = (name: string): boolean => name.startsWith("reasoning") || name === "thinking"

/** Removes the usage from an event. All other bytes are unchanged, except line ends inside the event's JSON. */
const withoutUsage = (event: string): string => {
  const lines = event.split(/(?<=\n)/)
  const data = lines.filter((line) => line.startsWith("data:"))
  if (data.length === 1) return lines.map((line) => (line === data[0] ? withoutMember(line) : line)).join("")
  const others = lines.filter((line) => line.trim() !== "" && !line.startsWith("data:")).join("")
  return `${others}data: ${withoutMember(dataOf(event).replaceAll("\n", " ").trim())}${blankLine}`
}

/** Removes the member `usage` from the JSON object that begins at the first brace in the string. */
const withoutMember = (json: string): string => {
  let depth = 0
  /** The start of the current member: its comma, or the byte after the brace. */
  let member = 0
  let found: number | undefined
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case '"': {
        const start = at
        for (at++; at < json.length && json[at] !== '"'; at++) if (json[at] === "\\") at++
        const isName = depth === 1 && json.slice(member, start).replace(",", "").trim() === ""
        if (isName && json.slice(start, at + 1) === '"usage"') found = member
        break
      }
      case "{":
      case "[":
        if (++depth === 1) member = at + 1
        break
      case "}":
      case "]":
        if (--depth > 0) break
        return found === undefined ? json : json.slice(0, found) + json.slice(at)
      case ",":
        if (depth !== 1) break
        if (found !== undefined) {
          const isFirst = json[found] !== ","
          return json.slice(0, found) + json.slice(isFirst ? at + 1 : at)
        }
        member = at
        break
    }
  }
  return json
}
