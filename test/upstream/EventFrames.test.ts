/** Frames of AWS event streams as server-sent events: whole, cut at any byte, damaged, and longer than any event. */
import { EventStreamCodec } from "@smithy/core/event-streams"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Sink, Source } from "../../src/upstream/wire/ByteStream.ts"
import { eventsOf, frameMax } from "../../src/upstream/wire/EventFrames.ts"

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
  (text) => Buffer.from(text, "utf8")
)

const frame = (headers: Readonly<Record<string, string>>, body: string): Buffer =>
  Buffer.from(
    codec.encode({
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [`:${name}`, { type: "string" as const, value }])
      ),
      body: Buffer.from(body)
    })
  )
const event = (name: string, body: string) => frame({ "event-type": name, "message-type": "event" }, body)

/** What is read of these chunks: the events, how they ended, and whether the source was let go. */
const read = (chunks: ReadonlyArray<Buffer>, ends: "end" | "cut" = "end") => {
  const seen = { text: "", ended: [] as Array<string>, short: false, aborted: 0 }
  let sink: Sink | undefined
  const answer: Source = {
    flow: (to) => {
      sink = to
    },
    pause: () => {},
    resume: () => {},
    abort: () => {
      seen.aborted++
      sink!.cut("aborted")
    }
  }
  eventsOf(answer).flow({
    data: (chunk) => {
      seen.text += chunk.toString("utf8")
    },
    end: () => seen.ended.push("end"),
    cut: (reason, short = false) => {
      seen.ended.push(reason)
      seen.short = short
    }
  })
  for (const chunk of chunks) sink!.data(chunk)
  if (ends === "end") sink!.end()
  else sink!.cut("reset")
  return seen
}

const first = event("messageStart", '{"role":"assistant"}')
const second = event("contentBlockDelta", '{"contentBlockIndex":0,"delta":{"text":"größer"}}')
const shown =
  'event: messageStart\ndata: {"role":"assistant"}\n\n' +
  'event: contentBlockDelta\ndata: {"contentBlockIndex":0,"delta":{"text":"größer"}}\n\n'

describe("frames", () => {
  it("are events, wherever they are cut", () => {
    const all = Buffer.concat([first, second])
    expect(read([all])).toEqual({ text: shown, ended: ["end"], short: false, aborted: 0 })
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: all.length }), { maxLength: 8 }), (cuts) => {
        const at = [0, ...cuts.toSorted((one, other) => one - other), all.length]
        const chunks = at.slice(1).map((end, i) => all.subarray(at[i], end))
        expect(read(chunks)).toEqual({ text: shown, ended: ["end"], short: false, aborted: 0 })
      })
    )
    expect(read([...all].map((byte) => Buffer.of(byte)))).toEqual({
      text: shown,
      ended: ["end"],
      short: false,
      aborted: 0
    })
  })

  it("of exceptions and errors are events of their names", () => {
    const exception = frame(
      { "exception-type": "throttlingException", "message-type": "exception" },
      '{"message":"slow down"}'
    )
    expect(read([exception]).text).toBe('event: throttlingException\ndata: {"message":"slow down"}\n\n')
    const error = frame({ "error-code": "InternalError", "error-message": "oh", "message-type": "error" }, "")
    expect(read([error]).text).toBe('event: internalServerException\ndata: {"message":"oh"}\n\n')
  })

  it("stay one event whatever stands in them", () => {
    const { text } = read([event("a\nevent: b", '{\r\n"x": 1\n}')])
    expect(text).toBe('event: a event: b\ndata: { "x": 1 }\n\n')
  })

  it("that are damaged break the stream behind what came before", () => {
    for (let at = 0; at < second.length; at++) {
      const damaged = Buffer.from(second)
      damaged[at]! ^= 0x01
      const seen = read([first, damaged])
      expect([at, seen.text]).toEqual([at, 'event: messageStart\ndata: {"role":"assistant"}\n\n'])
      expect([at, seen.ended.length, seen.ended[0] === "end"]).toEqual([at, 1, false])
    }
  })

  it("that are cut by the end break the stream, and so does a source that is cut", () => {
    expect(read([first, second.subarray(0, 30)])).toMatchObject({ ended: ["the last frame is truncated"], short: true })
    expect(read([first], "cut")).toMatchObject({ ended: ["reset"], short: false, aborted: 0 })
  })

  it("of impossible lengths are not waited for; the upstream has not failed if one is only too long", () => {
    for (const size of [0, 15, frameMax + 1, 2 ** 32 - 1]) {
      const head = Buffer.alloc(16)
      head.writeUInt32BE(size)
      expect(read([first, head, second])).toMatchObject({
        ended: [`a frame claims to be ${size} bytes long`],
        short: size > frameMax,
        aborted: 1
      })
    }
  })
})
