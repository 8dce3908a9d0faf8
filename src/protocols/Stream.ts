/**
 * What the readers and writers of all protocols' streams share.
 *
 * Where the specification is silent:
 * - An event that is no JSON object, or speaks of a part that never began, is a failure of the stream; one of an unknown kind is passed
 *   over. A stream whose bytes end before its answer is whole is a failure, wherever it was cut.
 * - A stop reason that is unknown is `end`, or `tool` where tools are called.
 */
import type { JsonObject } from "./Conversation.ts"
import type { Delta, FailureKind, StopReason } from "./Delta.ts"
import { isObject, parsed, text } from "./Json.ts"
import type { StreamReader } from "./Translation.ts"

export const noDeltas: ReadonlyArray<Delta> = []

export const failure = (kind: FailureKind, message: string): Delta => ({ type: "failure", failure: { kind, message } })

/** Of what makes no sense. */
export const senseless = (what: string): Delta => failure("vendor", `the upstream sent ${what}`)

export const cutOff: Delta = failure("vendor", "the upstream's stream was cut")

const isLast = (delta: Delta | undefined): boolean => delta?.type === "end" || delta?.type === "failure"

/** The start of a stream that does not say it. */
const unnamed: Delta = { type: "start", id: undefined, model: undefined, usage: undefined }

/** A reader of events that are JSON objects, of which `[DONE]` or the end of the bytes may be the last. */
export const streamReader = (
  read: (json: JsonObject, event: string | undefined) => ReadonlyArray<Delta>,
  atEnd: () => ReadonlyArray<Delta>
): StreamReader => {
  let begun = false
  let over = false
  const noting = (deltas: ReadonlyArray<Delta>): ReadonlyArray<Delta> => {
    const [first] = deltas
    if (first === undefined) return deltas
    over = isLast(deltas.at(-1))
    if (begun) return deltas
    begun = true
    return first.type === "start" || first.type === "failure" ? deltas : [unnamed, ...deltas]
  }
  return {
    read: ({ data, event }) => {
      if (over) return noDeltas
      if (data.length < 10 && data.trim() === "[DONE]") return noting(atEnd())
      const json = parsed(data)
      return noting(isObject(json) ? read(json, event) : [senseless("an event that is no JSON object")])
    },
    close: () => (over ? noDeltas : noting(atEnd()))
  }
}

/** The name of an event: as it is called, or as it says itself. */
export const nameOf = (json: JsonObject, event: string | undefined): string | undefined => text(json.type) ?? event

/** A stop reason, where some vendors say only that the answer ended. */
export const stopWith = (reason: StopReason | undefined, calls: boolean): StopReason =>
  calls && (reason === undefined || reason === "end") ? "tool" : (reason ?? "end")

export const event = (name: string, json: string): string => `event: ${name}\ndata: ${json}\n\n`

/**
 * Puts the steps of parts that come by turns one part after the other, for protocols in which one part is open at a time: what belongs
 * to a later part waits until those before it have ended.
 */
export const inSequence = (emit: (delta: Delta) => void): ((delta: Delta) => void) => {
  /** The part that is open, and what waits for its turn, by part, in the order in which they began. */
  let open = -1
  const waiting = new Map<number, Array<Delta>>()
  const next = (): void => {
    open = -1
    for (const [index, deltas] of waiting) {
      waiting.delete(index)
      for (const delta of deltas) emit(delta)
      if (deltas.at(-1)?.type === "part_end") continue
      open = index
      return
    }
  }
  return (delta) => {
    switch (delta.type) {
      case "text_start":
      case "refusal_start":
      case "thinking_start":
      case "tool_start":
        if (open === -1) {
          open = delta.index
          emit(delta)
        } else waiting.set(delta.index, [delta])
        return
      case "piece":
      case "signature":
      case "part_end":
        if (delta.index !== open) waiting.get(delta.index)?.push(delta)
        else {
          emit(delta)
          if (delta.type === "part_end") next()
        }
        return
      default:
        emit(delta)
    }
  }
}
