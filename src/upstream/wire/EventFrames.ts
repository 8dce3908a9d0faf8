/**
 * The frames of AWS event streams (`application/vnd.amazon.eventstream`), as server-sent events: each frame is an event whose name is that
 * of the frame (`:event-type`, `:exception-type`), and whose data is its JSON. Frames come cut at any byte.
 *
 * Where the specification is silent:
 * - A frame whose checksum is wrong, that is longer than an event may be, or that is cut by the end breaks the stream. What came before it is
 *   passed on.
 */
import { EventStreamCodec } from "@smithy/core/event-streams"
import type { Source } from "./ByteStream.ts"

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
  (text) => Buffer.from(text, "utf8")
)

/** The longest frame. Of an event that is longer nobody looks into the text. */
export const frameMax = 8 * 1024 * 1024
/** The length, that of the headers, and two checksums. */
const frameLeast = 16
/** Of the length of a frame. */
const lengthBytes = 4

type Headers = ReturnType<EventStreamCodec["decode"]>["headers"]

const textOf = (headers: Headers, name: string): string | undefined => {
  const header = headers[name]
  return header?.type === "string" ? header.value : undefined
}

/** A frame as an event. Fails where its checksums are wrong. */
const eventOf = (frame: Uint8Array): string => {
  const { body, headers } = codec.decode(frame)
  const text = (name: string) => textOf(headers, name)
  if (text(":message-type") === "error") {
    const message = text(":error-message") ?? text(":error-code")
    return `event: internalServerException\ndata: ${JSON.stringify({ message })}\n\n`
  }
  const name = text(":exception-type") ?? text(":event-type") ?? ""
  // A line end in JSON is a space, and would end the event's line.
  const json = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    .toString("utf8")
    .replaceAll(/[\r\n]+/g, " ")
  return `event: ${name.replaceAll(/[\r\n]+/g, " ")}\ndata: ${json}\n\n`
}

/** What has come of a stream of frames. */
class Frames {
  private pieces: Array<Buffer> = []
  private length = 0
  /** How many bytes there must be before there is something to read. */
  private needed = lengthBytes

  /** The events that these bytes complete. Fails with those before a frame that cannot be read. */
  take(chunk: Buffer): { readonly events: string; readonly fault: string | undefined } {
    this.pieces.push(chunk)
    this.length += chunk.length
    if (this.length < this.needed) return { events: "", fault: undefined }
    const bytes = this.pieces.length === 1 ? chunk : Buffer.concat(this.pieces, this.length)
    let events = ""
    let at = 0
    this.needed = lengthBytes
    while (bytes.length - at >= lengthBytes) {
      const size = bytes.readUInt32BE(at)
      if (size < frameLeast || size > frameMax) return { events, fault: `a frame says that it has ${size} bytes` }
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
    return { events, fault: undefined }
  }

  get isEmpty(): boolean {
    return this.length === 0
  }
}

/** The frames of an answer as server-sent events. */
export const eventsOf = (answer: Source): Source => ({
  flow: (sink) => {
    const frames = new Frames()
    let over = false
    const cut = (reason: string) => {
      if (over) return
      over = true
      sink.cut(reason)
    }
    answer.flow({
      data: (chunk) => {
        if (over) return
        const { events, fault } = frames.take(chunk)
        if (events !== "") sink.data(Buffer.from(events, "utf8"))
        if (fault === undefined) return
        cut(fault)
        answer.abort()
      },
      end: () => {
        if (!frames.isEmpty) return cut("its last frame is cut")
        if (!over) sink.end()
      },
      cut
    })
  },
  pause: answer.pause,
  resume: answer.resume,
  abort: answer.abort
})
