/** A response that consists of server-sent events. It sends strings as they arrive and applies the client's backpressure. */
import type { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Cause, Duration, Effect, FiberId } from "effect"
import { Readable } from "node:stream"
import { whenDraining } from "./Draining.ts"
import { whenOver } from "./Closed.ts"
import * as Inbound from "./Inbound.ts"
import { toResponse } from "./Reply.ts"
import type { Reply } from "./Reply.ts"

/** If more than this number of bytes is buffered, the client counts as a slow consumer. */
const bufferMax = 64 * 1024

const stallTimeout = Duration.seconds(30)

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

  /** Sends a string once the buffer has space. Returns `false` if the client is too slow: it has not read for half a minute. */
  send(text: string): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (!this.full) return Effect.sync(() => this.put(text))
      return Effect.map(Effect.timeoutOption(this.room, stallTimeout), (room) => room._tag === "Some" && this.put(text))
    })
  }

  /** Sends the last string without waiting, and ends the stream. */
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
 * Responds with a stream. `run` writes to the stream in a separate fiber. The stream ends when `run` yields a reason (stated in the last event) or
 * fails, when the client disconnects, or when the server begins to stop. `closed` is then called once.
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

const replyOf = (stream: EventStream): Reply => ({
  status: 200,
  // `x-accel-buffering` asks proxies not to buffer the response.
  headers: { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" },
  body: stream
})

/** Formats an event. `data` must be a single line. */
export const eventText = (event: string, data: string, id?: string): string =>
  `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`

/** The heartbeat: a comment that keeps the connection open and shows that both ends are alive. */
export const beatText = ": ping\n\n"
