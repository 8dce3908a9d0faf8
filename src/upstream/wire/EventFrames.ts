/**
 * Converts the frames of AWS event streams (`application/vnd.amazon.eventstream`) to server-sent events. An event gets the frame's name
 * (`:event-type`, `:exception-type`) and the frame's JSON as its data. Chunks can split frames at any byte.
 *
 * Where the specification is silent:
 * - A frame with a wrong checksum breaks the stream, but the frames before it are passed on.
 * - A frame that exceeds the maximum length or ends too early is dropped, and the stream is truncated there. The truncation does not count as an
 *   upstream failure.
 */
import { EventStreamCodec } from "@smithy/core/event-streams"
import type { Source } from "./ByteStream.ts"

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
  (text) => Buffer.from(text, "utf8")
)

/** The maximum length of a frame. Text frames take a few kilobytes. */
export const frameMax = 8 * 1024 * 1024
/** The minimum length of a frame: its length, its headers' length and two checksums. */
const frameLeast = 16
const lengthBytes = 4

type Headers = ReturnType<EventStreamCodec["decode"]>["headers"]

const textOf = (headers: Headers, name: string): string | undefined => {
  const header = headers[name]
  return header?.type === "string" ? header.value : undefined
}

/** Converts a frame to an event. Throws if a checksum is wrong. */
const eventOf = (frame: Uint8Array): string => {
  const { body, headers } = codec.decode(frame)
  const text = (name: string) => textOf(headers, name)
  if (text(":message-type") === "error") {
    const message = text(":error-message") ?? text(":error-code")
    return `event: internalServerException\ndata: ${JSON.stringify({ message })}\n\n`
  }
  const name = text(":exception-type") ?? text(":event-type") ?? ""
  // In JSON, a line break between values is only whitespace, but it would end the event's line.
  const json = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    .toString("utf8")
    .replaceAll(/[\r\n]+/g, " ")
  return `event: ${name.replaceAll(/[\r\n]+/g, " ")}\ndata: ${json}\n\n`
}

/** The events of complete frames. With a `fault`, they are the events of the frames before the unreadable one. */
interface Read {
  readonly events: string
  readonly fault?: string
  /** Whether the frame exceeds `frameMax`. It may still be valid. */
  readonly too_long?: boolean
}

/** Collects chunks into complete frames. */
class Frames {
  private pieces: Array<Buffer> = []
  private length = 0
  /** The number of bytes to collect before the next frame can be read. */
  private needed = lengthBytes

  /** Takes a chunk and returns the events that it completes. */
  take(chunk: Buffer): Read {
    this.pieces.push(chunk)
    this.length += chunk.length
    if (this.length < this.needed) return { events: "" }
    const bytes = this.pieces.length === 1 ? chunk : Buffer.concat(this.pieces, this.length)
    let events = ""
    let at = 0
    this.needed = lengthBytes
    while (bytes.length - at >= lengthBytes) {
      const size = bytes.readUInt32BE(at)
      if (size < frameLeast || size > frameMax)
        return { events, fault: `a frame claims to be ${size} bytes long`, too_long: size > frameMax }
      if (bytes.length - at < size) {
        this.needed = size
        break
      }
      try {
        events += eventOf(bytes.subarray(at, at + size))
      } catch {
        return { events, fault: "a frame is damaged" }
      }
      at += size
    }
    this.pieces = at === bytes.length ? [] : [bytes.subarray(at)]
    this.length = bytes.length - at
    return { events }
  }

  get isEmpty(): boolean {
    return this.length === 0
  }
}

export const eventsOf = (answer: Source): Source => ({
  flow: (sink) => {
    const frames = new Frames()
    let over = false
    const cut = (reason: string, short?: boolean) => {
      if (over) return
      over = true
      sink.cut(reason, short)
    }
    answer.flow({
      data: (chunk) => {
        if (over) return
        const { events, fault, too_long } = frames.take(chunk)
        if (events !== "") sink.data(Buffer.from(events, "utf8"))
        if (fault === undefined) return
        cut(fault, too_long)
        answer.abort()
      },
      end: () => {
        if (!frames.isEmpty) return cut("the last frame is truncated", true)
        if (!over) sink.end()
      },
      cut
    })
  },
  pause: answer.pause,
  resume: answer.resume,
  abort: answer.abort
})
