/**
 * Reads Messages streams. Most events are deltas and are passed on as they arrive. The reader inspects errors, the events that report usage
 * (`message_start` and `message_delta`), and the last event (`message_stop`). It withholds the last event until the charge is committed.
 *
 * Where the specification is silent:
 * - `message_delta` counts all completion tokens, whereas `message_start` counts only the first ones. A stream that breaks before `message_delta`
 *   costs its prompt tokens, if they were reported.
 * - A broken stream ends with an event `error` instead of `message_stop`.
 */
import type { StreamEnd } from "../../../upstream/wire/ByteStream.ts"
import { blankLine, eachEvent, parse, passedEventMax, runOf } from "../../prompts/EventRelay.ts"
import type { EventInspector, Reader } from "../../prompts/EventRelay.ts"
import { generatedInMessages } from "../../../protocols/conversation/Gist.ts"
import { usageOf } from "../../../protocols/messages/Usage.ts"
import { noUsage } from "../../../protocols/conversation/Usage.ts"

const stop = `event: message_stop\ndata: {"type":"message_stop"}${blankLine}`
const brokenOff = `event: error\ndata: ${JSON.stringify({
  type: "error",
  error: { type: "api_error", message: "the model's stream ended early", code: "upstream_error" }
})}${blankLine}`
export const broken = (): string => brokenOff

/** Matches the start of a generated string, and the type of an event that must be inspected. */
const marks =
  /"(?:(text|thinking|partial_json)"\s*:\s*"|type"\s*:\s*"(message_start|message_delta|message_stop|error)")/g

type Json = Readonly<Record<string, unknown>>

/** Copies the usage from `message_start`, except `output_tokens`, which counts only the first tokens. */
const noteStart = (usage: Record<string, unknown>, { message }: Json): void => {
  const said = ((message as Json | undefined)?.usage ?? {}) as Json
  for (const name in said) if (name !== "output_tokens") usage[name] = said[name]
}

/** Copies the usage from `message_delta`, which replaces earlier figures. A null figure replaces nothing. */
const noteDelta = (usage: Record<string, unknown>, delta: Json): void => {
  const said = (delta.usage ?? {}) as Json
  for (const name in said) if (said[name] !== null) usage[name] = said[name]
}

export const reader = (): Reader => {
  /** This object has no prototype, because a vendor can use any field name. */
  const usage = Object.create(null) as Record<string, unknown>
  let tokens_counted = 0
  let finished = false
  let last: string | undefined

  /** Inspects an event and returns the text to send to the client now, or `undefined` for an error. */
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
      case "message_start":
        noteStart(usage, data)
        return event
      case "message_delta":
        noteDelta(usage, data)
        finished ||= typeof (data.delta as Json | undefined)?.stop_reason === "string"
        return event
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

  const pass: EventInspector["pass"] = (text, at, blank) => {
    if (last !== undefined) return at
    const { end, tokens } = runOf(marks, text, at, blank)
    tokens_counted += tokens
    return end
  }
  const looking: EventInspector = { look, pass }

  return {
    take: (events, stream) => eachEvent(events, events.toString("latin1"), looking, stream),
    skip: (bytes, stream) => {
      if (last === undefined) stream.pass(bytes)
    },
    skipped: ({ blank, text, tokens }, stream) => {
      if (last !== undefined) return true
      tokens_counted += tokens
      if (look(text) === undefined) return false
      // A client recognizes the end of an event by the blank line. The blank line of the last event is withheld until the charge is committed.
      if (last === undefined) stream.pass(blank)
      else last = blank.toString("latin1")
      return true
    },
    generated: generatedInMessages,
    event_bytes_max: passedEventMax,
    isWhole: (text) => parse(text) !== undefined,
    isFinished: () => finished,
    report: () => ({ usage: usageOf(usage) ?? noUsage, tokens_counted }),
    last: (how: StreamEnd) => (how !== "complete" ? brokenOff : last === undefined ? stop : Buffer.from(last, "latin1"))
  }
}
