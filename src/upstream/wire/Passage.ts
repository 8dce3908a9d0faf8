/** Passes an upstream's response through to the client as it arrives, but ends it only after the charge is committed. */
import type { Effect } from "effect"
import type { Readable } from "node:stream"
import type { ReadToEnd } from "../../kernel/ReadOn.ts"
import { ByteStream, usually } from "./ByteStream.ts"
import type { StreamEnd, Source, Tap } from "./ByteStream.ts"

export interface Passage {
  /** Waits for the first bytes. Returns `false` if the response ends without any. */
  readonly begun: Effect.Effect<boolean>
  readonly body: Readable
  /** Waits until the upstream's response ends, even if the client has disconnected. A response without bytes is `broken`. */
  readonly ended: Effect.Effect<StreamEnd>
  /** Ends the client's response. An incomplete response is aborted instead, so that the client does not mistake it for a complete one. */
  readonly finish: (how: StreamEnd) => void
  /** Aborts the client's response, because the charge could not be committed in time. */
  readonly cut: () => void
}

export const make = (upstream: Source, to_its_end: ReadToEnd): Passage => {
  const stream = new ByteStream(upstream, { read_on: to_its_end, tap: counted() })
  return {
    begun: stream.begun(to_its_end),
    body: stream.body,
    ended: stream.ended,
    finish: (how) => (how === "complete" ? stream.finish() : stream.cut("the upstream's response ended early")),
    cut: () => stream.cut("the charge is not committed yet")
  }
}

const counted = (): Tap => {
  let bytes = 0
  return {
    data: (chunk, stream) => {
      bytes += chunk.length
      stream.pass(chunk)
    },
    end: (_, stop) => (stop === "ended" && bytes === 0 ? "broken" : usually(stop))
  }
}
