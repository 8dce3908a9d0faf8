/**
 * The streams of messages. Most events are pieces of an answer, which pass as they come; what is looked into is what says the usage
 * (`message_start`, `message_delta`), an error, and the last event, `message_stop`, which waits until the charge is in the books.
 *
 * Where the specification is silent:
 * - The tokens of an answer are those of `message_delta`: what `message_start` says of them is only their first. A stream that broke before
 *   is charged what the prompt used, if it was said.
 * - A broken stream ends with an event `error` in place of `message_stop`.
 */
import type { How } from "../upstream/ByteStream.ts"
import { blankLine, eachEvent, endOfString, parse } from "../chat/EventRelay.ts"
import type { Reader } from "../chat/EventRelay.ts"
import { usageOf } from "../protocols/messages/Usage.ts"
import { noUsage } from "../protocols/Usage.ts"
import { bytesAToken, tokensOfString } from "../chat/Tokens.ts"

const stop = `event: message_stop\ndata: {"type":"message_stop"}${blankLine}`
const brokenOff = `event: error\ndata: ${JSON.stringify({
  type: "error",
  error: { type: "api_error", message: "the model broke off", code: "upstream_error" }
})}${blankLine}`
/** How a stream ends that broke. */
export const broken = (): string => brokenOff

/** Generated strings by their names, and the events that are looked into. */
const marks =
  /"(?:(text|thinking|partial_json)"\s*:\s*"|type"\s*:\s*"(message_start|message_delta|message_stop|error)")/g

/** The tokens of pieces; `undefined` where an event is among them that must be looked into. */
const glance = (text: string): number | undefined => {
  let tokens = 0
  marks.lastIndex = 0
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    if (mark[2] !== undefined) return undefined
    const from = marks.lastIndex
    const end = endOfString(text, from)
    if (end === -1) return undefined
    tokens += tokensOfString(end - from)
    marks.lastIndex = end + 1
  }
  return tokens
}

type Json = Readonly<Record<string, unknown>>

/** What reads the events of one stream. */
export const reader = (): Reader => {
  let usage: Json = {}
  let tokens_counted = 0
  let finished = false
  let last: string | undefined

  /** Looks into an event; answers what the client is to have of it now. */
  const look = (event: string): string | undefined => {
    if (last !== undefined) {
      last += event
      return ""
    }
    const tokens = glance(event)
    if (tokens !== undefined) {
      tokens_counted += tokens
      return event
    }
    const data = parse(event)
    switch (data?.type) {
      case "message_start": {
        const { output_tokens: _, ...prompt } = ((data.message as Json | undefined)?.usage ?? {}) as Json
        usage = { ...usage, ...prompt }
        return event
      }
      case "message_delta": {
        usage = withFigures(usage, (data.usage ?? {}) as Json)
        finished ||= typeof (data.delta as Json | undefined)?.stop_reason === "string"
        return event
      }
      case "message_stop":
        finished = true
        last = event
        return ""
      case "error":
        return undefined
      default:
        return event
    }
  }

  return {
    take: (events, stream) => {
      const text = events.toString("latin1")
      const tokens = last === undefined ? glance(text) : undefined
      if (tokens === undefined) return eachEvent(events, text, look, stream)
      tokens_counted += tokens
      stream.pass(events)
    },
    skip: (bytes, stream) => {
      tokens_counted += Math.round(bytes.length / bytesAToken)
      stream.pass(bytes)
    },
    isWhole: (text) => parse(text) !== undefined,
    isFinished: () => finished,
    report: () => ({ usage: usageOf(usage) ?? noUsage, tokens_counted }),
    last: (how: How) => (how === "broken" ? brokenOff : last === undefined ? stop : Buffer.from(last, "latin1"))
  }
}

/** Figures that are said again count as they were said last. */
const withFigures = (usage: Json, more: Json): Json => ({
  ...usage,
  ...Object.fromEntries(Object.entries(more).filter(([, value]) => value !== null))
})
