/**
 * Reads Responses streams. Most events are deltas and are passed on as they arrive. The last event, `response.completed` or `response.incomplete`,
 * reports the usage. It is withheld until the charge is committed.
 *
 * Where the specification is silent:
 * - A broken or failed (`response.failed`) stream ends with an event `error`. The failure's message is not sent to the client.
 */
import { blankLine, eachEvent, parse, passedEventMax, runOf } from "../../prompts/EventRelay.ts"
import type { EventInspector, Reader } from "../../prompts/EventRelay.ts"
import { generatedInResponses } from "../../../protocols/conversation/Gist.ts"
import { usageOf } from "../../../protocols/responses/Usage.ts"
import { noUsage } from "../../../protocols/conversation/Usage.ts"
import type { Usage } from "../../../protocols/conversation/Usage.ts"
import { handedOutBy } from "./Named.ts"
import type { StreamEnd } from "../../../upstream/wire/ByteStream.ts"

/** Returns the event that ends a broken stream. Its sequence number follows the last one in `events`. */
export const broken = (events: string): string => {
  const error = {
    type: "upstream_error",
    code: "upstream_error",
    message: "the model's stream ended early",
    param: null
  }
  const sequence_number = lastNumber(events) + 1
  return `event: error\ndata: ${JSON.stringify({ ...error, type: "error", sequence_number, error })}${blankLine}`
}

/** Matches deltas and the events that must be inspected. */
const marks =
  /"(?:(delta)"\s*:\s*"|type"\s*:\s*"(?:response\.(?:completed|incomplete|failed)|error)")|^data: ?\[DONE\]/gm

/** Matches deltas, the events that must be inspected, and the events that contain ids. */
const marksOfIds =
  /"(?:(delta)"\s*:\s*"|type"\s*:\s*"(?:response\.(?:created|completed|incomplete|failed|output_item\.(?:added|done))|error)")|^data: ?\[DONE\]/gm

const numbered = /"sequence_number"\s*:\s*(\d+)/g

/** Returns the last `sequence_number` in the string, or -1. */
const lastNumber = (text: string): number => [...text.matchAll(numbered)].reduce((_, [, number]) => Number(number), -1)

export const reader = (notes: boolean): Reader => {
  const handed_out = notes ? new Set<string>() : undefined
  let usage: Usage = noUsage
  let tokens_counted = 0
  let latest = ""
  let last: string | undefined

  /** Inspects an event and returns the text to send to the client now, or `undefined` for an error. */
  const look = (event: string): string | undefined => {
    // Some vendors send chat's `[DONE]` after the last event.
    if (last !== undefined) return ""
    const data = parse(event)
    if (handed_out !== undefined && data !== undefined) for (const id of handedOutBy(data)) handed_out.add(id)
    switch (data?.type) {
      case "response.completed":
      case "response.incomplete":
        usage = usageIn(data.response)
        last = event
        return ""
      case "response.failed":
        usage = usageIn(data.response)
        return undefined
      case "error":
        return undefined
      default:
        return /^data: ?\[DONE\]/m.test(event) ? "" : event
    }
  }

  const pass: EventInspector["pass"] = (text, at, blank) => {
    if (last !== undefined) return at
    const { end, tokens } = runOf(notes ? marksOfIds : marks, text, at, blank)
    tokens_counted += tokens
    return end
  }
  const looking: EventInspector = { look, pass }

  return {
    take: (events, stream) => {
      latest = events.toString("latin1")
      eachEvent(events, latest, looking, stream)
    },
    skip: (bytes, stream) => {
      if (last === undefined) stream.pass(bytes)
    },
    skipped: ({ blank, text, tokens }, stream) => {
      if (last !== undefined) return true
      tokens_counted += tokens
      latest = text
      if (look(text) === undefined) return false
      // A client recognizes the end of an event by the blank line. The blank line of the last event is withheld until the charge is committed.
      if (last === undefined) stream.pass(blank)
      else last = blank.toString("latin1")
      return true
    },
    generated: generatedInResponses,
    event_bytes_max: passedEventMax,
    isWhole: (text) => parse(text) !== undefined,
    isFinished: () => last !== undefined,
    report: () => ({ usage, tokens_counted, ...(handed_out !== undefined && { handed_out: [...handed_out] }) }),
    last: (how: StreamEnd) => (how !== "complete" || last === undefined ? broken(latest) : Buffer.from(last, "latin1"))
  }
}

const usageIn = (response: unknown): Usage =>
  usageOf((response as { readonly usage?: unknown } | null)?.usage) ?? noUsage
