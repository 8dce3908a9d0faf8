/**
 * The streams of responses. Most events are pieces of an answer, which pass as they come; the last one, `response.completed` or
 * `response.incomplete`, has the usage in it and waits until the charge is in the books.
 *
 * Where the specification is silent:
 * - A broken stream ends with an event `error`; so does one of which the vendor says `response.failed`, whose words are not for the client.
 */
import { blankLine, eachEvent, parse, runOf } from "../../prompts/EventRelay.ts"
import type { Looking, Reader } from "../../prompts/EventRelay.ts"
import { generatedInResponses } from "../../../protocols/conversation/Gist.ts"
import { usageOf } from "../../../protocols/responses/Usage.ts"
import { noUsage } from "../../../protocols/conversation/Usage.ts"
import type { Usage } from "../../../protocols/conversation/Usage.ts"
import { handedOutBy } from "./Named.ts"
import type { How } from "../../../upstream/wire/ByteStream.ts"

/** How a stream ends that broke, behind these events. */
export const broken = (events: string): string => {
  const error = { type: "upstream_error", code: "upstream_error", message: "the model broke off", param: null }
  const sequence_number = lastNumber(events) + 1
  return `event: error\ndata: ${JSON.stringify({ ...error, type: "error", sequence_number, error })}${blankLine}`
}

/** Pieces of an answer, and the events that are looked into. */
const marks =
  /"(?:(delta)"\s*:\s*"|type"\s*:\s*"(?:response\.(?:completed|incomplete|failed)|error)")|^data: ?\[DONE\]/gm

/** The same with the events that hand out ids. */
const marksOfIds =
  /"(?:(delta)"\s*:\s*"|type"\s*:\s*"(?:response\.(?:created|completed|incomplete|failed|output_item\.(?:added|done))|error)")|^data: ?\[DONE\]/gm

const numbered = /"sequence_number"\s*:\s*(\d+)/g

/** The number of the last event in a text. */
const lastNumber = (text: string): number => [...text.matchAll(numbered)].reduce((_, [, number]) => Number(number), -1)

/** What reads the events of one stream. */
export const reader = (notes: boolean): Reader => {
  const handed_out = notes ? new Set<string>() : undefined
  let usage: Usage = noUsage
  let tokens_counted = 0
  let latest = ""
  let last: string | undefined

  /** Looks into an event; answers what the client is to have of it now. */
  const look = (event: string): string | undefined => {
    // Nothing follows it but what some vendors borrow from chat.
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

  const pass: Looking["pass"] = (text, at, blank) => {
    if (last !== undefined) return at
    const { end, tokens } = runOf(notes ? marksOfIds : marks, text, at, blank)
    tokens_counted += tokens
    return end
  }
  const looking: Looking = { look, pass }

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
      // Where it is the last event, the client takes it for one once its blank line has come.
      if (last === undefined) stream.pass(blank)
      else last = blank.toString("latin1")
      return true
    },
    generated: generatedInResponses,
    isWhole: (text) => parse(text) !== undefined,
    isFinished: () => last !== undefined,
    report: () => ({ usage, tokens_counted, ...(handed_out !== undefined && { handed_out: [...handed_out] }) }),
    last: (how: How) => (how === "broken" || last === undefined ? broken(latest) : Buffer.from(last, "latin1"))
  }
}

const usageIn = (response: unknown): Usage =>
  usageOf((response as { readonly usage?: unknown } | null)?.usage) ?? noUsage
