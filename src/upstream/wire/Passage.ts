/** Bytes of an upstream's answer that pass through as they come; the end waits for the books. */
import type { Effect } from "effect"
import type { Readable } from "node:stream"
import type { ToItsEnd } from "../../kernel/ReadOn.ts"
import { ByteStream } from "./ByteStream.ts"
import type { How, Source, Tap } from "./ByteStream.ts"

export interface Passage {
  /** Whether anything comes at all: answered with the first bytes, or with an end that none came before. */
  readonly begun: Effect.Effect<boolean>
  /** What the client reads. */
  readonly body: Readable
  /** Ends once, whatever the client does. `broken` where nothing came, too. An answer whose client has left is read on to its end. */
  readonly ended: Effect.Effect<How>
  /** Lets the client have the end; one that is broken is cut off, so that nobody takes it for whole. */
  readonly finish: (how: How) => void
  /** Cuts the client off: the books could not have the end in time. */
  readonly cut: () => void
}

export const make = (upstream: Source, to_its_end: ToItsEnd): Passage => {
  const stream = new ByteStream(upstream, { read_on: to_its_end, tap: counted() })
  return {
    begun: stream.begun(to_its_end),
    body: stream.body,
    ended: stream.ended,
    finish: (how) => (how === "broken" ? stream.cut("the upstream broke off") : stream.finish()),
    cut: () => stream.cut("the end of the call is not in the books yet")
  }
}

const counted = (): Tap => {
  let bytes = 0
  return {
    data: (chunk, stream) => {
      bytes += chunk.length
      stream.pass(chunk)
    },
    end: () => (bytes === 0 ? "broken" : "complete")
  }
}
