/** An answer of server-sent events: texts that go out as they come, to a client that is waited for when it does not read. */
import type { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Cause, Duration, Effect, FiberId } from "effect"
import { Readable } from "node:stream"
import { whenDraining } from "./Draining.ts"
import { whenOver } from "./Closed.ts"
import * as Inbound from "./Inbound.ts"
import { toResponse } from "./Reply.ts"
import type { Reply } from "./Reply.ts"

/** How many bytes wait for the client before it counts as behind. */
const bufferMax = 64 * 1024

/** How long a client that is behind is waited for. */
const patience = Duration.seconds(30)

export class EventStream extends Readable {
  private full = false
  private roomFor: (() => void) | undefined

  constructor() {
    super({ highWaterMark: bufferMax })
    this.once("close", () => this.roomFor?.())
  }

  override _read(): void {
    this.full = false
    this.roomFor?.()
  }

  /** Sends a text when there is room for it; answers `false` where the client has not read for half a minute. */
  send(text: string): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (!this.full) return Effect.sync(() => this.put(text))
      return Effect.map(Effect.timeoutOption(this.room, patience), (room) => room._tag === "Some" && this.put(text))
    })
  }

  /** The last text: nothing is waited for. */
  endWith(text: string): void {
    if (this.destroyed || this.readableEnded) return
    this.push(text)
    this.push(null)
  }

  private put(text: string): boolean {
    this.full = !this.push(text)
    return true
  }

  private readonly room = Effect.async<void>((resume) => {
    this.roomFor = () => {
      this.roomFor = undefined
      resume(Effect.void)
    }
  })
}

/**
 * Answers with a stream that `run` sends to, on a fiber of its own, until it answers why it ends (the last event says that reason), the client
 * leaves, or the server begins to stop. `closed` is called once then.
 */
export const served = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  run: (stream: EventStream) => Effect.Effect<string>,
  closed: () => void
): Effect.fn.Return<HttpServerResponse.HttpServerResponse> {
  const stream = new EventStream()
  const fiber = yield* run(stream).pipe(
    Effect.tapErrorCause((cause) =>
      Cause.isInterruptedOnly(cause) ? Effect.void : Effect.logWarning("an event stream ended early", cause)
    ),
    Effect.matchCause({
      onSuccess: (reason) => stream.endWith(endText(reason)),
      onFailure: () => stream.endWith(endText("unavailable"))
    }),
    Effect.interruptible,
    Effect.forkDaemon
  )
  const node = Inbound.nodeOf(request)
  const stop = node === undefined ? () => {} : whenDraining(node.response, () => stream.endWith(endText("shutdown")))
  if (node !== undefined) whenOver(node.response, () => stream.destroy())
  stream.once("close", () => {
    stop()
    closed()
    fiber.unsafeInterruptAsFork(FiberId.none)
  })
  return toResponse(replyOf(stream))
}, Effect.uninterruptible)

const endText = (reason: string): string => eventText("end", JSON.stringify({ reason }))

/** The stream as an answer. */
const replyOf = (stream: EventStream): Reply => ({
  status: 200,
  // A proxy that collects answers before it sends them on is asked not to.
  headers: { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" },
  body: stream
})

/** An event; `data` is the text of one line. */
export const eventText = (event: string, data: string, id?: string): string =>
  `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`

/** A comment, which keeps the connection and tells its two ends that the other is there. */
export const beatText = ": ping\n\n"
