/** An answer of server-sent events: texts that go out as they come, to a client that is waited for when it does not read. */
import { Duration, Effect } from "effect"
import { Readable } from "node:stream"
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

/** The stream as an answer. */
export const replyOf = (stream: EventStream): Reply => ({
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
