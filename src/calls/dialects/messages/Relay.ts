/**
 * The streams of messages. Most events are pieces of an answer, which pass as they come; what is looked into is what says the usage
 * (`message_start`, `message_delta`), an error, and the last event, `message_stop`, which waits until the charge is in the books.
 *
 * Where the specification is silent:
 * - The tokens of an answer are those of `message_delta`: what `message_start` says of them is only their first. A stream that broke before
 *   is charged what the prompt used, if it was said.
 * - A broken stream ends with an event `error` in place of `message_stop`.
 */
import type { How } from "../../../upstream/wire/ByteStream.ts"
import { blankLine, eachEvent, parse, runOf } from "../../prompts/EventRelay.ts"
import type { Looking, Reader } from "../../prompts/EventRelay.ts"
import { generatedInMessages } from "../../../protocols/conversation/Gist.ts"
import { usageOf } from "../../../protocols/messages/Usage.ts"
import { noUsage } from "../../../protocols/conversation/Usage.ts"

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

type Json = Readonly<Record<string, unknown>>

/** What reads the events of one stream. */
export const reader = (): Reader => {
  /** Without a prototype, since a vendor may call a field anything. */
  const usage = Object.create(null) as Record<string, unknown>
  let tokens_counted = 0
  let finished = false
  let last: string | undefined

  /** Looks into an event; answers what the client is to have of it now. */
  const look = (event: string): string | undefined => {
    if (last !== undefined) {
      last += event
      return ""
    }
    if (event === stop) {
      finished = true
      last = event
      return ""
    }
    const data = parse(event)
    switch (data?.type) {
      case "message_start": {
        const said = ((data.message as Json | undefined)?.usage ?? {}) as Json
        for (const name in said) if (name !== "output_tokens") usage[name] = said[name]
        return event
      }
      case "message_delta": {
        // Figures that are said again count as they were said last.
        const said = (data.usage ?? {}) as Json
        for (const name in said) if (said[name] !== null) usage[name] = said[name]
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

  const pass: Looking["pass"] = (text, at, blank) => {
    if (last !== undefined) return at
    const { end, tokens } = runOf(marks, text, at, blank)
    tokens_counted += tokens
    return end
  }
  const looking: Looking = { look, pass }

  return {
    take: (events, stream) => eachEvent(events, events.toString("latin1"), looking, stream),
    skip: (bytes, stream) => {
      if (last === undefined) stream.pass(bytes)
    },
    skipped: ({ blank, text, tokens }, stream) => {
      if (last !== undefined) return true
      tokens_counted += tokens
      if (look(text) === undefined) return false
      // Where it is the last event, the client takes it for one once its blank line has come.
      if (last === undefined) stream.pass(blank)
      else last = blank.toString("latin1")
      return true
    },
    generated: generatedInMessages,
    isWhole: (text) => parse(text) !== undefined,
    isFinished: () => finished,
    report: () => ({ usage: usageOf(usage) ?? noUsage, tokens_counted }),
    last: (how: How) => (how === "broken" ? brokenOff : last === undefined ? stop : Buffer.from(last, "latin1"))
  }
}
