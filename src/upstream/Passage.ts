/** Bytes of an upstream's answer that pass through as they come, in constant memory; the end waits for the books. */
import { Effect } from "effect"
import { Readable } from "node:stream"
import type { Streaming } from "./Wire.ts"

export interface PassageEnding {
  /** `complete`: the upstream finished. `broken`: it broke off, or sent nothing. `left`: the client went. */
  readonly how: "complete" | "broken" | "left"
  readonly bytes: number
}

export interface Passage {
  /** Whether anything comes at all: answered with the first bytes, or with an end that none came before. */
  readonly begun: Effect.Effect<boolean>
  /** What the client reads. */
  readonly body: Readable
  /** Ends once, whatever the client does. */
  readonly ended: Effect.Effect<PassageEnding>
  /** Lets the client have the end; one that is broken is cut off, so that nobody takes it for whole. */
  readonly finish: (ending: PassageEnding) => void
  /** Cuts the client off: the books could not have the end in time. */
  readonly cut: () => void
}

export const make = (upstream: Streaming): Passage => {
  let bytes = 0
  let ending: PassageEnding | undefined
  let onEnded: ((ending: PassageEnding) => void) | undefined
  let onBegun: ((begun: boolean) => void) | undefined

  const end = (how: PassageEnding["how"]) => {
    if (ending !== undefined) return
    ending = { how: how === "complete" && bytes === 0 ? "broken" : how, bytes }
    onBegun?.(bytes > 0)
    onEnded?.(ending)
  }

  const body = new Readable({
    highWaterMark: 64 * 1024,
    read: () => upstream.resume(),
    destroy: (error, callback) => {
      if (ending === undefined) {
        end("left")
        upstream.abort()
      }
      callback(error)
    }
  })

  upstream.flow({
    data: (chunk) => {
      bytes += chunk.length
      if (ending === undefined && !body.push(chunk)) upstream.pause()
      if (bytes > 0) onBegun?.(true)
    },
    end: () => end("complete"),
    cut: () => end("broken")
  })

  return {
    begun: Effect.async((resume) => {
      onBegun = (begun) => resume(Effect.succeed(begun))
      if (bytes > 0 || ending !== undefined) onBegun(bytes > 0)
    }),
    body,
    ended: Effect.async((resume) => {
      onEnded = (ending) => resume(Effect.succeed(ending))
      if (ending !== undefined) onEnded(ending)
    }),
    finish: ({ how }) => {
      if (how === "complete") body.push(null)
      else if (!body.destroyed) body.destroy(how === "broken" ? new Error("the upstream broke off") : undefined)
    },
    cut: () => void body.destroy(new Error("the end of the call is not in the books yet"))
  }
}
